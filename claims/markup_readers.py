"""Reads markdown, Typst and PDF as prose, and finds the reader for a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from ..documents.blocks import parse_blocks
from ..documents.safe_files import FileRefusedError, read_regular
from ..documents.sandbox import CallLimits, SandboxError, run_sandboxed
from ..errors import InputError
from ..ingestion.reading import read_pdf_apart
from ..text.words import read_rules
from .latex_reader import read_latex
from .manuscript import (
    CROSS_REFERENCE,
    LIST_HEADING,
    ListedReference,
    Manuscript,
    bracket_pairs,
)
from .word_reader import read_word

ENDINGS: Final = (".tex", ".md", ".markdown", ".qmd", ".org", ".docx", ".typ", ".pdf")
_MOST_BYTES: Final = 4_000_000
_SMALL: Final = 100_000  # bytes; a larger file, and every archive, is read in a separate process
_LIMITS: Final = CallLimits(seconds=60.0, memory=4 << 30)

_MARKDOWN, _TYPST, _ORG = (
    {name: re.compile(rule) for name, rule in read_rules(__file__, "markup_rules")[kind].items()}
    for kind in ("markdown", "typst", "org")
)
_STATEMENTS: Final = frozenset({"#set", "#show", "#let", "#import", "#include"})


def read_manuscript(path: Path, text: str | None = None) -> Manuscript:
    """Read a text in the format of its suffix; blocks. `text` is what an editor has of it, saved or not.

    Raises `InputError` with the file and the reason in one line.
    """
    kind = path.suffix.lower()
    if kind not in ENDINGS:
        raise InputError(f"{path}: is not one of {', '.join(ENDINGS)}.", help="Save it as one of these and check that.")
    if text is None and not path.exists():
        raise InputError(f"{path}: no such file.")
    try:
        if kind == ".pdf":
            return read_pdf(path)
        if kind == ".docx":
            return TypeAdapter(Manuscript).validate_python(run_sandboxed(read_word, _LIMITS, str(path)))
        if text is None and kind != ".tex":
            data = read_regular(path, _MOST_BYTES)
            if b"\0" in data:
                raise FileRefusedError("is not a text file")
            text = data.decode("utf-8-sig", "replace")
        if (path.stat().st_size if text is None else len(text)) <= _SMALL:
            return _MARKUP[kind](str(path), text)
        return TypeAdapter(Manuscript).validate_python(run_sandboxed(_MARKUP[kind], _LIMITS, str(path), text))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file.") from None
    except (FileRefusedError, SandboxError) as error:
        raise InputError(f"{path}: {error}.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None


def read_markdown(path: str, source: str) -> Manuscript:
    """Read the source of a markdown file."""
    cells = (own or given for own, given in _MARKDOWN["cell"].findall(source))
    labels = [*_MARKDOWN["labelled"].findall(source), *cells]
    prose = Manuscript("md", [Path(path).name], [source], labels=labels)
    prose.uncaptioned.update(
        figure=len(_MARKDOWN["image"].findall(source)), table=len(_MARKDOWN["table_rule"].findall(source))
    )
    in_list = False
    for block in parse_blocks(source, "paper"):
        raw = source[block.start : block.end]
        if block.kind == "front_matter":
            named = _MARKDOWN["bibliography"].search(block.token.content)
            names = [named["one"] or "", *re.findall(r"-[ \t]*([^\n]+)", named["many"])] if named else []
            stripped = [name.strip(" \t'\"[]") for whole in names for name in whole.split(",")]
            prose.bibliographies += filter(None, stripped)
        elif block.words is not None:
            in_list = bool(LIST_HEADING.fullmatch(block.words.content.strip()))
            prose.paragraph(0, block.start)
            prose.add(f"{'#' * int(block.token.tag[1])} ", 0, block.start, block.start)
            prose.add(" ".join(_MARKDOWN["labelled"].sub("", block.words.content).split()), 0, block.start, block.end)
            prose.paragraph(0, block.end)
        elif block.kind in ("paragraph_open", "blockquote_open", "bullet_list_open", "ordered_list_open"):
            if in_list:
                prose.listed += split_references(raw)
                continue
            prose.paragraph(0, block.start)
            prose.add(raw.rstrip(), 0, block.start, block.start + len(raw.rstrip()))
            prose.paragraph(0, block.end)
    return prose.finish()


def split_references(raw: str) -> list[ListedReference]:
    """The entries of a part of a reference list, split by numbers, bullets or paragraphs."""
    items = list(_MARKDOWN["item"].finditer(raw)) or list(_MARKDOWN["bullet"].finditer(raw))
    if not items:
        return [ListedReference("", " ".join(part.split())) for part in re.split(r"\n[ \t]*\n", raw) if part.strip()]
    ends = [item.start() for item in items[1:]] + [len(raw)]
    found = []
    for item, end in zip(items, ends, strict=True):
        label = next((group for group in item.groups() if group), "")
        found.append(ListedReference(label, " ".join(raw[item.end() : end].split())))
    return found


def read_typst(path: str, source: str) -> Manuscript:
    """Read the source of a Typst file."""
    scan = _TypstScan(Manuscript("typ", [Path(path).name], [source], labels=re.findall(r"<([\w][\w:.-]*)>", source)))
    scan.read(0, len(source))
    return scan.prose.finish()


class _TypstScan:
    """Scans Typst markup: the text of its content, without code."""

    def __init__(self, prose: Manuscript) -> None:
        self.prose = prose
        (self._source,) = prose.sources
        self._closings = bracket_pairs(_TYPST["bracket"], self._source)
        self._in_heading = False

    def read(self, start: int, end: int) -> None:
        place = start
        while place < end:
            token = _TYPST["token"].match(self._source, place, end)
            if token is None:
                break
            place = self._token(token, end)

    def _token(self, token: re.Match[str], end: int) -> int:
        start, stop = token.span()
        if token["comment"] or token["raw"]:
            return stop
        if token["escaped"]:
            self.prose.add(token[0][1:], 0, start, stop)
        elif token["math"]:
            inside = token["math"][1:-1]
            if inside[:1].isspace() and inside[-1:].isspace():
                self.prose.add("\u2026", 0, start, start)
            else:
                plain = re.fullmatch(r"[\d\s.,+<>=()%-]{1,60}|[A-Za-z]", inside)
                self.prose.add(inside if plain else f"${' '.join(inside.split())}$", 0, start, stop)
        elif token["heading"]:
            self.prose.paragraph(0, start)
            self.prose.add("#" * len(token["heading"].strip()) + " ", 0, start, stop)
            self._in_heading = True
        elif token["at"]:
            name = token["at"][1:].rstrip(".:-")
            if name in self.prose.labels or CROSS_REFERENCE.fullmatch(f"@{name}"):
                self.prose.point("label", name, name, 0, start, stop)
            else:
                self.prose.add(f"[@{{{name}}}]", 0, start, stop)
            return stop if token["supplement"] else start + 1 + len(name)
        elif token["label"]:
            return stop
        elif token["code"]:
            return self._code(token["code"], start, stop, end)
        elif token["blank"] or (self._in_heading and "\n" in token[0]):
            self.prose.paragraph(0, start)
            self._in_heading = False
        elif token["space"]:
            self.prose.space(0, start)
        elif token["plain"] not in "[]*_":
            self.prose.add(token["plain"], 0, start, stop)
        return stop

    def _code(self, name: str, start: int, stop: int, end: int) -> int:
        if name in _STATEMENTS:
            line = self._source.find("\n", stop, end)
            line = end if line < 0 else line
            for opening in filter(lambda at: at >= 0, (self._source.find(sign, stop, line) for sign in "([{")):
                line = max(line, self._closing(opening, end))
            return line
        behind = self._closing(stop, end) if self._source.startswith("(", stop) else stop
        arguments = self._source[stop:behind]
        if name == "#cite":
            keys = [first or second for first, second in _TYPST["key"].findall(arguments)]
            written = "; ".join(f"@{{{key}}}" for key in keys)
            prose = '"prose"' in arguments and len(keys) == 1
            self.prose.add(f"@{{{keys[0]}}}" if prose else f"[{written or '@'}]", 0, start, behind)
        elif name == "#bibliography":
            self.prose.bibliographies += re.findall(r"\"([^\"]{1,200}\.(?:bib|ya?ml))\"", arguments)
        elif name in ("#figure", "#footnote", "#quote"):
            caption = arguments.find("caption:")
            if name == "#figure" and caption >= 0:
                self.prose.uncaptioned["table" if arguments.startswith("(table(") else "figure"] += 1
            opening = self._source.find("[", stop + caption, behind) if caption >= 0 else -1
            if opening >= 0:
                self.prose.paragraph(0, opening)
                self.read(opening + 1, self._closing(opening, behind) - 1)
                self.prose.paragraph(0, behind)
        return behind

    def _closing(self, opening: int, end: int) -> int:
        """The position after the bracket that closes the one at `opening`."""
        close = self._closings.get(opening, opening)
        return close + 1 if close < end else opening + 1


_ORG_PROSE: Final = frozenset({"quote", "abstract", "center"})


def read_org(path: str, source: str) -> Manuscript:
    """Read the source of an Org file, with citations of Org and org-ref."""
    prose = Manuscript("org", [Path(path).name], [source])
    place, closing = 0, ""
    for line in source.splitlines(keepends=True):
        start, place, found = place, place + len(line), _ORG["line"].fullmatch(line.rstrip("\r\n"))
        if closing:
            closing = "" if line.strip().casefold() == closing else closing
        elif found is None and line.strip():
            _add_org_words(prose, line, start)
        elif found is None:
            prose.paragraph(0, start)
        elif found["heading"]:
            prose.paragraph(0, start)
            title = _ORG["tags"].sub("", found["title"].strip())
            prose.add(f"{'#' * len(found['heading'])} {title}", 0, start, place)
            prose.paragraph(0, place)
        elif found["caption"]:
            prose.uncaptioned["figure"] += 1
            prose.paragraph(0, start)
            _add_org_words(prose, found["caption"], start + found.start("caption"))
            prose.paragraph(0, place)
        elif found["block"] and found["block"].casefold() not in _ORG_PROSE:
            closing = f"#+end_{found['block'].casefold()}"
        prose.bibliographies += [found["bib"].strip(' "')] if found and found["bib"] else []
        prose.labels += [found["label"]] if found and found["label"] else []
    return prose.finish()


def _add_org_words(prose: Manuscript, words: str, start: int) -> None:
    done = 0
    for match in _ORG["citation"].finditer(words):
        prose.add(words[done : match.start()], 0, start + done, start + match.start())
        keys = _ORG["key"].findall(match[1] or "".join(f"@{key.strip('&')};" for key in re.split("[,;]", match[2])))
        shown = "; ".join(f"@{{{key}}}{f', {place.strip()}' if place.strip() else ''}" for key, place in keys)
        prose.add(f"[{shown or '@'}]", 0, start + match.start(), start + match.end())
        done = match.end()
    prose.add(words[done:], 0, start + done, start + len(words))


_MARKUP: Final[dict[str, Callable[..., Manuscript]]] = {
    **{".tex": read_latex, ".typ": read_typst, ".org": read_org},
    **dict.fromkeys((".md", ".markdown", ".qmd"), read_markdown),
}


def read_pdf(path: Path) -> Manuscript:
    """Read a PDF; blocks. Raises `FileRefusedError`."""
    paper = read_pdf_apart(path)
    prose = Manuscript("pdf", [path.name], notices=list(paper.warnings))
    for section in paper.sections:
        if not section.searchable:
            if LIST_HEADING.fullmatch(section.title.strip()):
                for block in paper.section_blocks(section):
                    prose.listed += split_references(paper.text[block.start : block.end])
            continue
        page = paper.page_at(section.start) or 1
        prose.paragraph(page, 0)
        prose.add(f"## {section.title}", page, 0, 0)
        prose.paragraph(page, 0)
        for block in paper.section_blocks(section):
            if block.kind not in ("prose", "list"):
                continue
            for line in re.split(r"(?<=\n)", paper.text[block.start : block.end]):
                at = paper.page_at(block.start) or page
                prose.add(line, at, 0, 0)
            prose.paragraph(page, 0)
    return prose.finish()
