"""Documents open in editors: converts positions to offsets, and finds the citation being typed and all cited keys.

Every pattern is bounded or anchored, so that matching takes linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePath
from typing import Any, Final

from lsprotocol.types import Position, Range
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument, Workspace

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


class ManuscriptDocument(TextDocument):
    """A text in an editor; positions outside it are moved to the nearest valid one."""

    _split: tuple[str, tuple[str, ...], list[int]] = ("", (), [0])  # a source, its lines, and their start offsets

    @property
    def suffix(self) -> str:
        """The suffix that selects its reader; empty for a language without citations."""
        known = SUFFIXES.get(PurePath(self.path or "").suffix.lower()) or SUFFIXES.get((self.language_id or "").lower())
        return known or ""

    @property
    def file(self) -> Path:
        """Its path (for an unsaved text, one in the current folder), with the suffix of its reader."""
        path = Path(self.path) if self.path and self.uri.startswith("file:") else Path.cwd() / "untitled"
        return path if path.suffix.lower() == self.suffix else path.with_name(f"{path.stem}{self.suffix}")

    @property
    def lines(self) -> tuple[str, ...]:
        return self._lines()[0]

    def _lines(self) -> tuple[tuple[str, ...], list[int]]:
        """The lines, and their start offsets with the end; cached, since a check converts thousands of positions."""
        source = self.source
        if self._split[0] is not source:
            found = tuple(_LINE.findall(source))
            self._split = source, found, list(accumulate(map(len, found), initial=0))
        return self._split[1:]

    def place(self, position: Position) -> int:
        """Convert a position to an offset."""
        (lines, starts), row, codec = self._lines(), max(0, position.line), self.position_codec
        if row >= len(lines):
            return starts[-1]
        line = lines[row].rstrip("\r\n")
        units = min(max(0, position.character), codec.client_num_units(line))
        return starts[row] + codec.position_from_client_units([line], Position(0, units)).character

    def position(self, place: int) -> Position:
        """Convert an offset to a position."""
        lines, starts = self._lines()
        row = max(0, bisect_right(starts, place) - 1)
        if row == len(lines) and lines and not lines[-1].endswith(("\r", "\n")):
            row -= 1
        before = lines[row][: place - starts[row]] if row < len(lines) else ""
        return Position(row, self.position_codec.client_num_units(before))

    def range(self, start: int, end: int) -> Range:
        return Range(self.position(start), self.position(end))

    def _apply_incremental_change(self, change: Any) -> None:
        start, end = self.place(change.range.start), self.place(change.range.end)
        source = self.source
        self._source = f"{source[:start]}{change.text}{source[max(start, end) :]}"


class ManuscriptWorkspace(Workspace):
    """A workspace that makes `ManuscriptDocument`s."""

    def _create_text_document(
        self, doc_uri: str, source: Any = None, version: Any = None, language_id: Any = None
    ) -> Any:
        kind, codec = self._sync_kind, self.position_codec
        return ManuscriptDocument(doc_uri, source, version, language_id, sync_kind=kind, position_codec=codec)


def open_document(file: Path, workspace: Workspace) -> ManuscriptDocument | None:
    """Return a file as open in the editor, else from disk; None if it cannot be read."""
    for document in workspace.text_documents.values():
        if isinstance(document, ManuscriptDocument) and to_fs_path(document.uri) == str(file):
            return document
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return ManuscriptDocument(from_fs_path(str(file)) or "", source, position_codec=workspace.position_codec)


# File suffixes and editors' language names, with the suffix that selects the reader.
SUFFIXES: Final = {
    **dict.fromkeys((".tex", ".ltx", "latex", "tex", "plaintex", "latex-mode"), ".tex"),
    **dict.fromkeys((".md", ".markdown", ".rmd", "markdown", "rmarkdown", "rmd", "pandoc", "gfm"), ".md"),
    **dict.fromkeys((".qmd", "quarto"), ".qmd"),
    **dict.fromkeys((".org", "org"), ".org"),
    **dict.fromkeys((".typ", "typst"), ".typ"),
}
_BEFORE: Final = 1_000  # characters before the cursor in which a citation may begin
_AFTER: Final = 400
_KEY: Final = r"[^\s,;@{}\[\]()<>\"'\\]"
_AT: Final = re.compile(rf"(?<![\w\\@])-?@\{{?(?P<prefix>{_KEY}{{0,100}})\Z")
_CROSS: Final = re.compile(r"(?:fig|tbl|tab|eq|sec|lst|thm)[:-]")
_OPENINGS: Final = {
    ".tex": (
        re.compile(
            r"\\[A-Za-z]{0,20}cite[A-Za-z]{0,20}\*?(?:\[[^\[\]]{0,200}\]){0,2}(?:\{[^{}]{0,400}\}){0,5}"
            r"\{(?:[^{}\\,]{0,200},){0,40}[ \t\n]{0,40}(?P<prefix>[^{}\\,]{0,100})\Z"
        ),
    ),
    ".typ": (re.compile(rf"#cite\(\s{{0,5}}<(?P<prefix>{_KEY}{{0,100}})\Z"), _AT),
    ".org": (
        re.compile(rf"\[cite(?:/[\w/-]{{1,20}})?:[^\[\]]{{0,400}}?(?P<sign>@?)(?P<prefix>{_KEY}{{0,100}})\Z"),
        re.compile(rf"\b[a-z]{{0,6}}cite[a-z]{{0,6}}:(?:{_KEY}{{1,100}}[,;]){{0,20}}(?P<prefix>{_KEY}{{0,100}})\Z"),
    ),
}
_REST: Final = re.compile(rf"{_KEY}{{0,100}}")
_LATEX: Final = re.compile(
    r"\\(?:[A-Za-z]{0,20}cite[A-Za-z]{0,20}\*?(?:\[[^\[\]]{0,200}\]){0,2}|bibitem(?:\[[^\[\]]{0,200}\])?)"
    r"(?P<keys>(?:\{[^{}]{1,1000}\}){1,10})"
)
_PANDOC: Final = r"(?<![\w\\@])-?@(?:\{(?P<braced>[^{}\s]{1,200})\}|(?P<bare>\w[\w:.#$%&+?<>~/-]{0,200}))"
_CITATIONS: Final = {
    ".tex": _LATEX,
    ".typ": re.compile(rf"{_PANDOC}|#cite\(\s{{0,5}}<(?P<label>[\w:.-]{{1,200}})>"),
    ".org": re.compile(
        r"\[cite(?:/[\w/-]{1,20})?:(?P<keys>[^\[\]]{1,1000})\]|\b[a-z]{0,6}cite[a-z]{0,6}:(?P<listed>[\w:.,;&-]{1,400})"
    ),
}
_IN_GROUP: Final = {
    ".tex": re.compile(r"[^\s,{}]+"),
    ".org": re.compile(r"(?<=[@&])\w[\w:./-]*|(?:(?<=[,;])|\A)\w[\w:.-]*"),
}
_MARKDOWN: Final = re.compile(_PANDOC)
_NUMBERED: Final = re.compile(r"\[(?P<keys>\d{1,4}(?:\s?[,;\u2013-]\s?\d{1,4}){0,30})\]")


@dataclass(frozen=True, slots=True)
class OpenCitation:
    """The citation being typed: `start:end` spans the key so far, `prefix` is its part before the cursor.

    `whole` is the span of the citation, `keys` its other keys, and `sign` what is still missing before the key.
    """

    prefix: str
    start: int
    end: int
    whole: tuple[int, int]
    keys: tuple[str, ...]
    sign: str = ""


@dataclass(frozen=True, slots=True)
class CitedKey:
    """A cited key or number at `start:end` of a text; `whole` is the span of its citation."""

    key: str
    start: int
    end: int
    whole: tuple[int, int]


def open_citation(text: str, cursor: int, suffix: str) -> OpenCitation | None:
    """Find the citation being typed at the cursor; None if there is none."""
    first = max(0, cursor - _BEFORE)
    before = text[first:cursor]
    for pattern in _OPENINGS.get(suffix, (_AT,)):
        found = pattern.search(before)
        if found is None or (pattern is _AT and _CROSS.match(found["prefix"])):
            continue
        start = first + found.start("prefix")
        rest = _REST.match(text, cursor)
        begin, stop = first + found.start(), rest.end() if rest else cursor
        if pattern is _AT and suffix != ".typ":
            bracket = before.rfind("[", max(0, found.start() - _AFTER), found.start())
            if bracket >= 0 and not re.search(r"[\]\n]", before[bracket : found.start()]):
                begin = first + bracket
        closing = {"\\": "}", "[": "]", "#": ")"}.get(text[begin], "")
        close = text.find(closing, stop, stop + _AFTER) if closing else -1
        behind = close + 1 if close >= 0 and not re.search(r"\n[ \t]*\n|[\\\[{]", text[stop:close]) else stop
        others = (item for item in cited_keys(text[begin:behind], suffix) if not start <= begin + item.start < stop)
        keys = tuple(item.key for item in others)
        sign = "@" if "sign" in pattern.groupindex and not found["sign"] else ""
        prefix = found["prefix"].removeprefix("&")  # org-ref
        return OpenCitation(prefix, start + len(found["prefix"]) - len(prefix), stop, (begin, behind), keys, sign)
    return None


def cited_keys(text: str, suffix: str) -> Iterator[CitedKey]:
    """Yield all keys that a text cites, in order."""
    for match in _CITATIONS.get(suffix, _MARKDOWN).finditer(text):
        groups = match.groupdict()
        for name, found in groups.items():
            if found is None:
                continue
            start = match.start(name)
            if name in ("keys", "listed"):
                for key in _IN_GROUP[suffix].finditer(found):
                    if name == "listed" or suffix != ".org" or found[key.start() - 1 : key.start()] == "@":
                        key_text = key[0] if suffix == ".tex" else key[0].rstrip(".:-")
                        first = start + key.start()
                        yield CitedKey(key_text, first, first + len(key_text), match.span())
                continue
            key_text = found.rstrip(".,:;?!-") if name == "bare" else found
            if not _CROSS.match(key_text):
                yield CitedKey(key_text, start, start + len(key_text), match.span())


def cited_at(text: str, place: int, suffix: str) -> CitedKey | None:
    """Find the cited key or number at an offset; None if there is none."""
    first, last = text.rfind("\n\n", 0, place) + 1, text.find("\n\n", place)
    part = text[first : last if last >= 0 else len(text)]
    for item in cited_keys(part, suffix):
        if item.start <= place - first <= item.end:
            whole = (first + item.whole[0], first + item.whole[1])
            return CitedKey(item.key, first + item.start, first + item.end, whole)
    for match in _NUMBERED.finditer(part):
        for number in re.finditer(r"\d+", match["keys"]):
            start = first + match.start("keys") + number.start()
            if start <= place <= start + len(number[0]):
                return CitedKey(number[0], start, start + len(number[0]), (first + match.start(), first + match.end()))
    return None


def entry_span(bib: str, key: str) -> tuple[int, int] | None:
    """Find the span of a key in its entry of a `.bib` file."""
    found = re.search(rf"@\w{{1,40}}\s*[{{(]\s*(?P<key>{re.escape(key)})\s*,", bib)
    return found.span("key") if found else None
