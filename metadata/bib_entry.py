"""Makes BibTeX entries from service data, and completes or appends to a `.bib` without replacing the user's content.

Citation keys are made from Better BibTeX patterns such as `auth.lower + year + veryshorttitle.lower`: a sum of terms,
each a quoted text or a function with arguments and filters. `FUNCTIONS` and `FILTERS` list the supported ones.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final

from ..documents import Paper
from ..documents.bibliography import Bibliography, as_latex, parse_bibliography, read_bibliography, render_entry
from ..documents.paper_names import Identifier
from ..documents.safe_files import replace_file
from ..errors import ConfigurationError, InputError
from ..stores.metadata_store import MetadataStore
from ..text.words import read_rules, read_words, without_accents

if TYPE_CHECKING:
    from .enriching import StoredMetadata
    from .service_works import Work

KINDS: Final = read_rules(__file__, "kinds_of_works")
VENUE_FIELD: Final[Mapping[str, str]] = KINDS["venue_fields"]
_COMPLETED: Final = {"volume": "volume", "issue": "number", "pages": "pages"}
_KIND = re.compile(r"^\s*@\s*(\w+)")
_END = re.compile(r"(?<![\s,])[\s,]*+([})])\s*$")
_PAGES = re.compile(r"^\s*([\w.]+)\s*[-\u2013\u2014]+\s*([\w.]+)\s*$")


def bib_entry(work: Work, key: str) -> str:
    entry_type = KINDS["crossref"].get(work.kind, "article" if work.venue and not work.is_preprint else "misc")
    arxiv = Identifier(work.doi.lower()).arxiv
    venue = work.venue or (work.publisher if entry_type in ("phdthesis", "techreport") else "")
    fields = {
        "title": "{" + as_latex(work.title) + "}",
        "author": " and ".join(
            bib_name(author.family, author.name.removesuffix(author.family).strip())
            if author.name.endswith(author.family)
            else _protect(as_latex(author.name))
            for author in work.authors
        ),
        "year": str(work.year or ""),
        VENUE_FIELD.get(entry_type, "howpublished"): as_latex(venue),
        "volume": as_latex(work.volume),
        "number": as_latex(work.issue),
        "pages": as_latex(normalize_pages(work.pages)),
        "publisher": as_latex(work.publisher) if entry_type in ("book", "incollection", "inproceedings") else "",
        "doi": re.sub(r"[{}\\]", "", work.doi),
        "eprint": arxiv,
        "archiveprefix": "arXiv" if arxiv else "",
    }
    return render_entry(entry_type, key, fields)


def bib_name(family: str, given: str) -> str:
    """A name as "Family, Given"; a name without given names in braces."""
    if not given:
        return "{" + as_latex(family) + "}"
    return _protect(", ".join(as_latex(part).replace(",", " ") for part in (family, given)))


def _protect(name: str) -> str:
    """Put words that would separate or end a list of names in braces."""
    return re.sub(r"\b(and|others)\b", r"{\1}", name)


def normalize_pages(pages: str) -> str:
    """A page range in BibTeX form; anything else unchanged."""
    return _PAGES.sub(r"\1--\2", pages)


def complete_papers(store: MetadataStore, papers: Sequence[Paper]) -> list[Paper]:
    """Fill in the DOI, venue, volume, issue and pages missing from the papers' entries; blocks."""
    if store.is_empty():
        return list(papers)
    from .enriching import stored_metadata  # lazy: loads service clients

    dois = store.dois(papers)
    return [complete_paper(paper, stored_metadata(store, paper)) if paper.key in dois else paper for paper in papers]


def complete_paper(paper: Paper, known: StoredMetadata) -> Paper:
    """The paper with missing fields filled in; unchanged if the resulting entry would be unreadable."""
    filled = {item.field: str(item.value) for item in known.filled}
    kind = _KIND.match(paper.bibtex)
    entry_type = kind[1].lower() if kind else ""
    places = dict(_COMPLETED)
    if entry_type in ("article", "inproceedings", "incollection"):
        places["venue"] = VENUE_FIELD[entry_type]
    fields = {name: as_latex(filled[field]) for field, name in places.items() if field in filled}
    if "pages" in fields:
        fields["pages"] = normalize_pages(fields["pages"])
    if not paper.doi and known.doi:
        fields["doi"] = re.sub(r"[{}\\]", "", known.doi)
    end = _END.search(paper.bibtex)
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    if end is None or not lines:
        return paper
    bibtex = "\n".join([f"{paper.bibtex[: end.start()]},", *lines, end[1]])
    try:
        read = parse_bibliography(bibtex, source=paper.key)
    except InputError:
        return paper
    if set(read.papers) != {paper.key} or read.refused or read.warnings:
        return paper
    return replace(paper, bibtex=bibtex, doi=paper.doi or known.doi, venue=paper.venue or filled.get("venue", ""))


def read_bib(path: Path) -> Bibliography:
    """Read a `.bib` that may not exist yet; raises `InputError` if it is unreadable."""
    return read_bibliography(path) if path.exists() else Bibliography()


def append_entries(path: Path, entries: Sequence[str]) -> None:
    """Append entries to a `.bib` atomically, keeping its content byte for byte. Raises `InputError`."""
    text = "\n\n".join(entries)
    made = parse_bibliography(text, source=str(path))
    if made.refused or len(made.papers) != len(entries):
        raise InputError(f"{path}: an entry could not be made ({made.refused[0].reason if made.refused else 'key'}).")
    try:
        before = path.read_bytes() if path.exists() else b""
        gap = b"" if not before else b"\n" if before.endswith(b"\n") else b"\n\n"
        write_durably(path, before + gap + text.encode("utf-8") + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).", help="Choose another .bib.") from error


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file atomically, with its folder created if missing; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path.resolve() if path.is_symlink() else path, content)


# Better BibTeX skips such words in titles.
_SKIPPED: Final = read_words("words_skipped_in_keys")
_PLAIN: Final = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "æ": "ae", "Æ": "AE", "đ": "d"})
_UNSAFE = re.compile(r"[^A-Za-z0-9:_-]+")
_LONGEST: Final = 120


@dataclass(frozen=True, slots=True)
class KeyFields:
    """The fields from which a key is made."""

    families: Sequence[str]
    title: str
    year: int | None
    venue: str = ""
    kind: str = ""


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub(r"(?<=\w)['’-](?=\w)", "", text))


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _fold(text: str) -> str:
    return without_accents(text.translate(_PLAIN))


def _keep_key_characters(text: str) -> str:
    return _UNSAFE.sub("", _fold(text)).strip("-:_")


def _authors(fields: KeyFields, count: int, letters: int, start: int = 0) -> str:
    return "".join("".join(_words(name))[: letters or None] for name in fields.families[start : start + count])


def _title_words(fields: KeyFields, count: int, capitals: int) -> str:
    words = [word for word in _words(fields.title) if word.casefold() not in _SKIPPED] or _words(fields.title)
    taken = words[:count]
    return "".join(_capitalize(word) if place < capitals else word for place, word in enumerate(taken))


FUNCTIONS: Final[Mapping[str, tuple[tuple[int, ...], Callable[..., str]]]] = {
    # name: (defaults of its numeric arguments, its result)
    "auth": ((0, 1), lambda fields, letters, which: _authors(fields, 1, letters, max(which, 1) - 1)),
    "authors": ((0,), lambda fields, count: _authors(fields, count or len(fields.families), 0)),
    "authorLast": ((), lambda fields: _authors(fields, 1, 0, len(fields.families) - 1) if fields.families else ""),
    "authEtAl": (
        (),
        lambda fields: _authors(fields, 1, 0) + "EtAl" if len(fields.families) > 2 else _authors(fields, 2, 0),
    ),
    "title": ((), lambda fields: "".join(map(_capitalize, _words(fields.title)))),
    "shorttitle": ((3, 0), _title_words),
    "veryshorttitle": ((1, 0), _title_words),
    "year": ((), lambda fields: str(fields.year or "")),
    "shortyear": ((), lambda fields: str(fields.year or "")[-2:]),
    "journal": ((), lambda fields: " ".join(_words(fields.venue))),
    "type": ((), lambda fields: fields.kind),
}
FILTERS: Final[Mapping[str, Callable[..., str]]] = {
    "lower": str.lower,
    "upper": str.upper,
    "capitalize": _capitalize,
    "alphanum": lambda text: "".join(sign for sign in text if sign.isalnum()),
    "clean": _keep_key_characters,
    "fold": _fold,
    "ascii": lambda text: "".join(sign for sign in _fold(text) if sign.isascii()),
    "abbr": lambda text: "".join(word[0] for word in re.findall(r"[A-Z]?[^\sA-Z]+|[A-Z]", text)),
    **dict.fromkeys(("select", "substring"), lambda text, start=1, count=0: text[max(start - 1, 0) :][: count or None]),
    "prefix": lambda text, lead="": lead + text if text else "",
    "postfix": lambda text, end="": text + end if text else "",
}

_SAMPLE: Final = KeyFields(["Family"], "Title", 2000, "Venue", "kind")


class KeyPattern:
    """A parsed pattern; raises `ConfigurationError` if it is invalid."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        try:
            # Patterns happen to be Python expressions, but have no escapes in their texts.
            self._sum = ast.parse(pattern.strip().replace("\\", "\\\\"), mode="eval").body
        except SyntaxError as error:
            rest = pattern.strip()[(error.offset or 1) - 1 :][:20]
            raise self._pattern_error(f"{rest!r} is not understood") from None
        except (ValueError, MemoryError, RecursionError):
            raise self._pattern_error("it is not understood") from None
        self._evaluate(self._sum, _SAMPLE)

    def key(self, fields: KeyFields, taken: Collection[str] = ()) -> str:
        """The ASCII key of a paper, with the next free letter appended if `taken` contains it in any case."""
        base = _keep_key_characters(self._evaluate(self._sum, fields))[:_LONGEST] or "paper"
        used = {key.casefold() for key in taken}
        endings = itertools.chain.from_iterable(itertools.product(ascii_lowercase, repeat=n) for n in itertools.count())
        return next(key for ending in endings if (key := base + "".join(ending)).casefold() not in used)

    def _evaluate(self, node: ast.expr, fields: KeyFields) -> str:
        named: ast.expr = node
        arguments: list[Any] = []
        if isinstance(node, ast.Call) and not node.keywords:
            named, arguments = node.func, [getattr(each, "value", None) for each in node.args]
        if any(type(value) not in (int, str) for value in arguments):
            raise self._pattern_error(f"{ast.unparse(node)!r} has an argument that is neither a number nor a text")
        match named:
            case ast.BinOp(left=left, op=ast.Add(), right=right) if named is node:
                return self._evaluate(left, fields) + self._evaluate(right, fields)
            case ast.Constant(value=str() as text) if named is node:
                return text
            case ast.Name(id=name):
                defaults, function = FUNCTIONS[self._find(name, FUNCTIONS, "function")]
                if len(arguments) > len(defaults) or any(isinstance(value, str) for value in arguments):
                    raise self._pattern_error(f"{name} does not take these arguments")
                return function(fields, *arguments, *defaults[len(arguments) :])
            case ast.Attribute(value=value, attr=name):
                change = FILTERS[self._find(name, FILTERS, "filter")]
                try:
                    return change(self._evaluate(value, fields), *arguments)
                except TypeError:
                    raise self._pattern_error(f"{name} does not take these arguments") from None
        raise self._pattern_error(f"{ast.unparse(node)[:20]!r} is not understood")

    def _find(self, name: str, known: Mapping[str, object], what: str) -> str:
        found = next((one for one in known if one.casefold() == name.casefold()), None)
        if found is None:
            raise self._pattern_error(f"there is no {what} {name!r}; there are {', '.join(known)}")
        return found

    def _pattern_error(self, why: str) -> ConfigurationError:
        return ConfigurationError(
            f"Setting citation_key (CITELOOM_CITATION_KEY): {self._pattern!r}: {why}.",
            help="Write it like 'auth.lower + year + veryshorttitle.lower'.",
        )
