"""Reads a BibTeX library, keeping keys and entries verbatim; unreadable entries and duplicate keys are refused.

A paper's metadata come from its entry, else from the file itself.
"""

from __future__ import annotations

import hashlib
import logging
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..text.words import letters_of
from .bibtex_faults import comment_fault, entry_fault, split_fields
from .front_matter import YEAR, find_doi
from .paper_names import NAME_SUFFIX, family_name
from .safe_files import FileRefusedError, read_regular
from .sandbox import CallLimits, SandboxError, run_sandboxed
from .types import Category, Paper, text_hash

if TYPE_CHECKING:
    from bibtexparser.model import Block, Entry

    from .markdown import ParsedPaper


_MONTHS = frozenset({"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"})
_NEEDS_DECODING = re.compile(r"[\\{}$~%]|--|``|''")
_BRACED = re.compile(r"\{[^{}]*\}")
# What is decoded separately, once per library: an accent, a group, an escaped sign, signs that stand for another.
_GROUP = r"\{(?:[^\\{}$]|\\[^{}$]|\{(?:[^\\{}$]|\\[^{}$])*+\})*+\}"
_PIECE = re.compile(
    rf"\\[`'^\"~=.]\s*+(?:\\[ij](?![A-Za-z])|[A-Za-z]|{_GROUP})|\\[A-Za-z]{_GROUP}|\\[&%$#_]|{_GROUP}"
    r"|-{2,}|``|''|~|[?!]`"
)
_LATEX = re.compile(r"[\\{}$~]|--|``|''|[?!]`")
# Titles from publishers' records contain tags, which some programs convert to LaTeX.
_ANGLE = re.compile(r"\\text(less|greater)(?:\{\}|\s+|(?![A-Za-z]))")
_TAG = re.compile(r"</?(?:i|b|u|em|strong|sub|sup|sc|scp|span|p|jats:[\w-]+)(?:\s[^<>]*)?/?>", re.IGNORECASE)


def field_value(raw: str, macros: Mapping[str, str]) -> str:
    """The source text of a field, without its braces or quotes and with macros expanded."""
    parts = _value_parts(raw)
    return "".join(part[1:-1] if part[0] in '{"' else macros.get(part.lower(), part) for part in parts).strip()


def uses_macros(raw: str) -> bool:
    """Whether a field needs an `@string` of its file; month names are predefined everywhere."""
    bare = [part for part in _value_parts(raw) if part[0] not in '{"']
    return any(not part.isdigit() and part.lower() not in _MONTHS for part in bare)


def _value_parts(raw: str) -> Iterator[str]:
    depth, quoted, ends = 0, False, [-1]
    for index, character in enumerate(raw):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif character == '"' and depth == 0:
            quoted = not quoted
        elif character == "#" and depth == 0 and not quoted:
            ends.append(index)
    parts = (raw[begin + 1 : end].strip() for begin, end in pairwise([*ends, len(raw)]))
    yield from filter(None, parts)


def readable(latex: str) -> str:
    """A LaTeX value as plain text on one line: accents as letters, no braces or tags, formulas unchanged."""
    text = _TAG.sub("", _ANGLE.sub(lambda match: "<" if match[1] == "less" else ">", latex))
    if not _NEEDS_DECODING.search(text):
        return " ".join(text.split())
    # In LaTeX a bare % begins a comment and a bare & a column, but in a title they are literal.
    whole = re.sub(r"(?<!\\)([%&])", r"\\\1", text).strip()
    for value in (whole, whole.removeprefix("{").removesuffix("}")):
        if not _LATEX.search(_PIECE.sub(" ", value)):
            return " ".join(_PIECE.sub(lambda piece: _decode_piece(piece[0]), value).split())
    return " ".join(_decode(whole).split())


@lru_cache(maxsize=10_000)
def _decode_piece(latex: str) -> str:
    bare = re.sub(r"[{}]", "", latex)
    return _decode(latex) if _LATEX.search(bare) else bare


def _decode(latex: str) -> str:
    decoder, known = _decoder()
    try:
        return str(decoder.latex_to_text(latex, latex_context=known))
    except (IndexError, KeyError):  # a command lacks its arguments
        return latex


@lru_cache(maxsize=1)
def _decoder() -> tuple[Any, Any]:
    from pylatexenc.latex2text import LatexNodes2Text  # type: ignore[import-untyped]
    from pylatexenc.latexwalker import get_default_latex_context_db  # type: ignore[import-untyped]

    # It logs every command that it cannot convert to the user's terminal.
    logging.getLogger("pylatexenc").addHandler(logging.NullHandler())
    logging.getLogger("pylatexenc").propagate = False
    # Created once: otherwise it would take half the time of reading a library.
    return LatexNodes2Text(math_mode="verbatim", keep_comments=True), get_default_latex_context_db()


def author_names(value: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Display names and family names of an author field; "others" is kept for "et al."."""
    from bibtexparser.middlewares.names import parse_single_name_into_parts, split_multiple_persons_names

    display: list[str] = []
    family: list[str] = []
    for name in split_multiple_persons_names(value):
        parts = parse_single_name_into_parts(name, strict=False)
        shown, given = readable(name), readable(" ".join(parts.first))
        # "Ada B. Lovelace, Jr." has no family name before its comma.
        if "," in _BRACED.sub("", name) and (parts.jr or not NAME_SUFFIX.match(given)):
            last = readable(" ".join([*parts.von, *parts.last]))
            shown = " ".join(filter(None, [given, last, readable(" ".join(parts.jr))]))
        else:
            braced = bool(parts.last) and parts.last[-1].startswith("{")
            last = readable(parts.last[-1]) if braced else family_name(shown)
        if shown:
            display.append(shown)
            family.append(last)
    return tuple(display), tuple(family)


def label_list(labels: Sequence[str]) -> str:
    """The source of a field with these labels; labels that contain a comma are put in braces."""
    sources = map(as_latex, labels)
    return ", ".join(f"{{{source}}}" if re.search("[,;]", source) else source for source in sources if source)


def render_entry(entry_type: str, key: str, fields: Mapping[str, str]) -> str:
    """Render a BibTeX entry; values must be BibTeX source."""
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{entry_type}{{{key},", *lines, "}"])


def as_latex(text: str) -> str:
    """Escape plain text as BibTeX source, so that nothing can end the field."""
    cleaned = re.sub(r"[{}\\]", "", " ".join(text.split()))
    return re.sub(r"([&%$#_])", r"\\\1", cleaned).replace("~", r"\textasciitilde{}").replace("^", r"\^{}")


_ENTRY_KEY = re.compile(r"@\s*\w+\s*[{(]\s*([^\s,{}()]+)")
_VENUE_FIELDS = "journal journaltitle booktitle series school institution howpublished publisher".split()
_NOT_INHERITED = frozenset({"crossref", "doi", "url", "abstract", "file", "keywords", "note"})
_MOST_BYTES = 50_000_000  # about 50,000 entries with abstracts
_MOST_CHARACTERS = 200_000  # per entry, with macros expanded
_MOST_IN_ALL = 500_000_000
_LARGE = 100_000  # characters; a larger text is parsed in a separate process
_LIMITS = CallLimits(seconds=300.0, memory=4 << 30)
_TITLE_ENOUGH = 12  # letters and digits that a title needs to identify a paper


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused input, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True)
class Bibliography:
    """The papers of a `.bib` by key; `files` maps base names of files to paths, `unreadable` are refused entries."""

    papers: Mapping[str, Paper] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @cached_property
    def _known(self) -> dict[tuple[str, str], list[Paper]]:
        known: dict[tuple[str, str], list[Paper]] = {}
        for paper in self.papers.values():
            for form in ("key", paper.key.lower()), ("doi", paper.doi), ("title", letters_of(paper.title)):
                known.setdefault(form, []).append(paper)
        return known

    def match(self, path: Path, *, doi: str = "", title: str = "") -> Paper | None:
        """Match a paper's file to its entry: by key, `file` field, DOI or title, in this order."""
        wanted = letters_of(title)
        return (
            self.papers.get(path.stem)
            or self._only("key", path.stem.lower())
            or self.papers.get(self.files.get(path.name.lower(), ""))
            or (self._only("doi", doi.lower()) if doi else None)
            or (self._only("title", wanted) if len(wanted) >= _TITLE_ENOUGH else None)
        )

    def has_unreadable_entry(self, path: Path, *, doi: str = "", title: str = "") -> bool:
        """Whether a refused entry seems to belong to this file: by its key, file name, DOI or title."""
        names = list(filter(None, (path.name.lower(), doi.lower())))
        wanted = letters_of(title) if len(letters_of(title)) >= _TITLE_ENOUGH else ""
        return any(
            ((named := _ENTRY_KEY.search(raw)) and named[1].lower() == path.stem.lower())
            or any(name in raw.lower() for name in names)
            or (wanted and wanted in letters_of(raw))
            for raw in self.unreadable
        )

    def _only(self, name: str, value: str) -> Paper | None:
        found = self._known.get((name, value), [])
        return found[0] if len(found) == 1 else None


def read_bibliography(path: Path) -> Bibliography:
    """Read a `.bib` file; raises `InputError` if it is missing, not text or too large."""
    try:
        data = read_regular(path, _MOST_BYTES)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file.", help="Give the path of your .bib file to --bib.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    except FileRefusedError as error:
        kind = "is a folder, not a .bib file" if path.is_dir() else str(error)
        raise InputError(f"{path}: {kind}.", help="Give the file itself to --bib.") from None
    if b"\0" in data:
        raise InputError(f"{path} is not a text file.", help="Export your library as BibTeX or BibLaTeX.")
    warnings: tuple[str, ...] = ()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
        warnings = (f"{path} is not UTF-8 and was read as Latin-1.",)
    if len(text) <= _LARGE:
        return parse_bibliography(text, source=str(path), warnings=warnings)
    from pydantic import TypeAdapter

    try:
        return TypeAdapter(Bibliography).validate_python(
            run_sandboxed(parse_bibliography, _LIMITS, text, str(path), warnings)
        )
    except SandboxError as error:
        raise InputError(f"{path}: cannot be read (the parser {error}).", help="Give it in parts.") from None
    except FileRefusedError as error:
        raise InputError(str(error)) from None


NO_YEAR = "year: not a year of publication; write it with four digits, such as 2024."


def parse_bibliography(text: str, source: str, warnings: Sequence[str] = ()) -> Bibliography:
    """Parse a BibTeX text; `source` names it in refusals. Raises `InputError` if its macros expand too far."""
    from bibtexparser.entrypoint import parse_string

    # The parser's log only repeats the refusals.
    logging.getLogger("bibtexparser").addHandler(logging.NullHandler())
    logging.getLogger("bibtexparser").propagate = False
    library = parse_string(text, parse_stack=[])
    macros = {name.lower(): field_value(string.value, {}) for name, string in library.strings_dict.items()}
    papers: dict[str, Paper] = {}
    files: dict[str, str] = {}
    lines: dict[str, int] = {}
    refused: list[Refusal] = []
    unreadable: list[str] = []
    notes = list(warnings)
    in_all = 0
    parents = {entry.key.lower(): entry for entry in library.entries}
    for last, block in zip([None, *library.blocks], library.blocks, strict=False):
        line = (block.start_line or 0) + 1
        try:
            entry, faults = _entry(block, last, lines)
            notes += [f"{source}: line {number}: {fault}" for number, fault in faults]
            if entry is None:
                continue
            whole = _inherit(entry, parents, macros)
            paper = _read_paper(whole, macros, as_written=whole is block)
            if paper.year is None and re.search(r"\d", field_value(_fields(whole).get("year", ""), macros)):
                notes.append(f"{source}: line {line}: {entry.key}: {NO_YEAR}")
        except _EntryRefusedError as error:
            refused.append(Refusal(source, f"line {line}: {error}"))
            unreadable.append((block.raw or "")[:_MOST_CHARACTERS])
            continue
        lines[entry.key] = line
        papers[entry.key] = paper
        in_all += len(paper.bibtex)
        if in_all > _MOST_IN_ALL:
            raise InputError(f"{source}: line {line}: its entries expand to more than {_MOST_IN_ALL / 1e6:.0f} MB.")
        # As Zotero ("name:path:type;...") and JabRef (":path:PDF") write it.
        for part in re.split(r"(?<!\\)[;:]", field_value(_fields(entry).get("file", ""), macros)):
            name = PureWindowsPath(re.sub(r"\\([:;_&%$#{}\\])", r"\1", part)).name.strip().lower()
            if re.search(r"\.\w{1,8}$", name):
                files.setdefault(name, entry.key)
    if not papers and not refused:
        notes.append(f"{source} has no BibTeX entries; export your library as BibTeX or BibLaTeX.")
    return Bibliography(papers, files, tuple(refused), tuple(notes), tuple(unreadable))


class _EntryRefusedError(Exception):
    """A refused entry; the message is the reason."""


def _entry(block: Block, last: Block | None, lines: Mapping[str, int]) -> tuple[Entry | None, list[tuple[int, str]]]:
    """The entry in a block, None for comments and macros; and the faults there with their lines.

    `last` is the block before. Raises `_EntryRefusedError`.
    """
    from bibtexparser import model

    entry: object = block
    if isinstance(block, model.DuplicateBlockKeyBlock | model.DuplicateFieldKeyBlock):
        entry = block.ignore_error_block
    elif isinstance(block, model.ParsingFailedBlock):
        named = _ENTRY_KEY.search(block.raw or "")
        why = entry_fault(block.raw or "", getattr(block.error, "abort_reason", ""))
        raise _EntryRefusedError(f"entry {named[1] if named else 'without a key'} {why}")
    elif isinstance(block, model.ImplicitComment):
        fault = comment_fault(block.raw or "", behind_entry=isinstance(last, model.Entry))
        return None, [((block.start_line or 0) + 1, fault)] if fault else []
    if not isinstance(entry, model.Entry):
        return None, []
    key = entry.key
    if not key or re.search(r"[\s{}\\\"#%~,]", key):
        raise _EntryRefusedError(f"entry without a usable key ({key or 'none'}): write one after its opening brace")
    if key in lines:
        raise _EntryRefusedError(f"duplicate key {key} (first on line {lines[key]}); the first entry is kept")
    fields, faults = split_fields(entry.fields)
    first: dict[str, model.Field] = {}
    for item in fields:
        if first.setdefault(item.key.lower(), item) is not item:
            faults.append(((item.start_line or 0) + 1, f"{item.key} is given twice; the first counts. Remove one."))
    if faults:
        entry = model.Entry(entry.entry_type, key, [*first.values()], entry.start_line, entry.raw)
    return entry, [(number, f"{key}: {fault}") for number, fault in faults]


def _inherit(entry: Entry, parents: Mapping[str, Entry], macros: Mapping[str, str]) -> Entry:
    """The entry with the fields inherited through its `crossref`, so that it is self-contained.

    As in BibTeX, the parent's title becomes the book title, and the parent's own `crossref` is not followed.
    """
    from bibtexparser import model

    raw = _fields(entry)
    wanted = field_value(raw.get("crossref", ""), macros).lower()
    parent = parents.get(wanted) if wanted else None
    if parent is None or parent.key == entry.key:
        return entry
    inherited = dict(_fields(parent))
    if "title" in inherited:
        inherited.setdefault("booktitle", inherited.pop("title"))
    own = [item for item in entry.fields if item.key.lower() != "crossref"]
    taken = [model.Field(name, value) for name, value in inherited.items() if name not in {*raw, *_NOT_INHERITED}]
    return model.Entry(entry.entry_type, entry.key, [*own, *taken], entry.start_line, entry.raw)


def _fields(entry: Entry) -> dict[str, str]:
    return {item.key.lower(): str(item.value) for item in entry.fields}


def _read_paper(entry: Entry, macros: Mapping[str, str], *, as_written: bool) -> Paper:
    """The paper of an entry; raises `_EntryRefusedError` if it expands too far or is nested too deeply."""
    raw = _fields(entry)
    parts = (part for value in raw.values() for part in _value_parts(value))  # a macro expands wherever it is used
    if sum(len(part if part[0] in '{"' else macros.get(part.lower(), part)) for part in parts) > _MOST_CHARACTERS:
        raise _EntryRefusedError(f"entry {entry.key} has more than {_MOST_CHARACTERS:,} characters")
    # Self-contained and valid if rewritten: without macros and duplicate fields.
    values = {name: field_value(value, macros) for name, value in raw.items()}
    source = (entry.raw or "").strip()
    if not as_written or not source or any(uses_macros(value) for value in raw.values()):
        source = render_entry(entry.entry_type, entry.key, values)

    def text(name: str) -> str:
        return readable(values.get(name, ""))

    try:
        authors, families = author_names(values.get("author", values.get("editor", "")))
        year = YEAR.search(text("year")) or YEAR.search(text("date"))
        url = _link(values.get("url", ""))
        return Paper(
            key=entry.key,
            title=": ".join(filter(None, [text("title"), text("subtitle")])) if text("title") else "",
            authors=authors,
            family_names=families,
            year=int(year.group(1)) if year else None,
            venue=next(filter(None, map(text, _VENUE_FIELDS)), ""),
            doi=find_doi(_link(values.get("doi", ""))) or (find_doi(url) if "doi.org/" in url else ""),
            url=url,
            abstract=text("abstract"),
            bibtex=source,
        )
    except RecursionError:
        raise _EntryRefusedError(f"entry {entry.key} is nested too deeply to be read") from None


def _link(value: str) -> str:
    r"""A URL without LaTeX escapes and `\url{...}`."""
    inner = re.sub(r"^\\url\{(.*)\}$", r"\1", value.strip())
    return re.sub(r"\\([_%#&~])", r"\1", inner).replace(r"{\_}", "_").strip()


SUMMARY_WORDS = 150


def describe(path: Path, parsed: ParsedPaper, bibliography: Bibliography) -> tuple[Paper, list[str]]:
    """The paper's metadata, and warnings about what had to be inferred.

    With an entry in the bibliography, the file only fills its empty fields; without one, a BibTeX entry is generated.
    """
    front = parsed.front_matter
    entry = bibliography.match(path, doi=front.doi, title=parsed.title)
    warnings = [f"{path}: {problem}." for problem in (front.problem, *parsed.warnings) if problem]
    if entry is None:
        in_file = parsed.title_source or ("front matter" if front.title else "first heading")
        found = in_file if parsed.title else "file name"
        read = " and ".join(name for name, value in (("authors", front.authors), ("year", front.year)) if value)
        rest = f", its {read} from the first page" if read and parsed.page_starts else ""
        if not bibliography.has_unreadable_entry(path, doi=front.doi, title=parsed.title):
            warnings.append(f"{path}: no .bib entry; its title was taken from the {found}{rest}.")
    paper = entry or Paper(key=key_from_path(path), title="")
    paper = replace(
        paper,
        title=paper.title or parsed.title or path.stem,
        authors=paper.authors or front.authors,
        family_names=paper.family_names or tuple(family_name(author) for author in front.authors),
        year=paper.year or front.year,
        venue=paper.venue or front.venue,
        doi=paper.doi or front.doi,
        abstract=paper.abstract or parsed.abstract(),
        source=str(path.resolve()),
        content_hash=text_hash(parsed.text),
        pages=len(parsed.page_starts) or paper.pages,
        ocr_pages=parsed.ocr_pages,
    )
    return (paper if paper.bibtex else replace(paper, bibtex=make_entry(paper))), warnings


def key_from_path(path: Path) -> str:
    """A citation key from a file name, safe in BibTeX, pandoc and LaTeX."""
    plain = unicodedata.normalize("NFKD", path.stem).encode("ascii", "ignore").decode()
    key = re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-")
    return key or "paper-" + hashlib.sha256(path.stem.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def make_entry(paper: Paper) -> str:
    """Generate a BibTeX entry for a paper without one."""
    authors = " and ".join(as_latex(re.sub(r"\band\b", "{and}", author)) for author in paper.authors)
    fields = {
        "title": "{" + as_latex(paper.title) + "}",
        "author": authors,
        "year": str(paper.year or ""),
        "journal": as_latex(paper.venue),
        "doi": re.sub(r"[{}\\]", "", paper.doi),
    }
    return render_entry("article" if paper.venue else "misc", paper.key, fields)


def has_own_entry(paper: Paper) -> bool:
    """Whether the paper's entry was supplied rather than generated from its metadata."""
    return bool(paper.bibtex) and paper.bibtex != make_entry(paper)


def extractive_summary(parsed: ParsedPaper) -> str:
    """The first prose of the searchable sections, up to the end of the paragraph that exceeds `SUMMARY_WORDS`."""
    taken, count = list[str](), 0
    wanted = [section for section in parsed.sections if section.searchable]
    wanted.sort(key=lambda section: section.category is Category.OTHER)  # stable sort: the body before boxes
    for section in wanted:
        for block in parsed.section_blocks(section):
            text = parsed.text[block.start : block.end]
            if block.kind != "prose" or len(text.split()) < 12 or text.lstrip().startswith(("![", "<", ":::")):
                continue
            taken.append(" ".join(text.split()[: max(SUMMARY_WORDS - count, 0) + SUMMARY_WORDS // 3]))
            count += len(text.split())
            if count >= SUMMARY_WORDS:
                return "\n\n".join(taken)
    return "\n\n".join(taken) or parsed.title
