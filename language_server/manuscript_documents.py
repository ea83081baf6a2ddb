"""Documents as editors have them: their lines end as the protocol says, and their positions become offsets."""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path, PurePath
from typing import Any, Final

from lsprotocol.types import Position, PositionEncodingKind, Range
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument, Workspace

from .citation_syntax import SUFFIXES

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_UNIT_BYTES: Final = {PositionEncodingKind.Utf8: ("utf-8", 1), PositionEncodingKind.Utf32: ("utf-32-le", 4)}


class ManuscriptDocument(TextDocument):
    """A text in an editor; wrong positions are moved to the nearest place that exists."""

    _split: tuple[str, tuple[str, ...], list[int]] = ("", (), [0])

    @property
    def suffix(self) -> str:
        """The suffix of the reader that reads it; empty for a language without citations."""
        known = SUFFIXES.get(PurePath(self.path or "").suffix.lower()) or SUFFIXES.get((self.language_id or "").lower())
        return known or ""

    @property
    def file(self) -> Path:
        """Where it is, or would be in this folder, with the suffix of its reader."""
        path = Path(self.path) if self.path and self.uri.startswith("file:") else Path.cwd() / "untitled"
        return path if path.suffix.lower() == self.suffix else path.with_name(f"{path.stem}{self.suffix}")

    @property
    def lines(self) -> tuple[str, ...]:
        return self._lines()[1]

    def _lines(self) -> tuple[str, tuple[str, ...], list[int]]:
        source = self.source
        if self._split[0] is not source:
            found = tuple(_LINE.findall(source))
            starts = [0]
            for line in found:
                starts.append(starts[-1] + len(line))
            self._split = (source, found, starts)
        return self._split

    def place(self, position: Position) -> int:
        """The offset of a position."""
        _, lines, starts = self._lines()
        if position.line >= len(lines):
            return starts[-1]
        line = lines[max(0, position.line)].rstrip("\r\n")
        units = max(0, position.character)
        if not line.isascii():
            encoding, size = self._encoding
            units = len(line.encode(encoding, "surrogatepass")[: units * size].decode(encoding, "ignore"))
        return starts[max(0, position.line)] + min(units, len(line))

    def position(self, place: int) -> Position:
        """The position of an offset."""
        _, lines, starts = self._lines()
        row = max(0, bisect_right(starts, place) - 1)
        if row == len(lines) and lines and not lines[-1].endswith(("\r", "\n")):
            row -= 1
        before = lines[row][: place - starts[row]] if row < len(lines) else ""
        encoding, size = self._encoding
        units = len(before) if before.isascii() else len(before.encode(encoding, "surrogatepass")) // size
        return Position(row, units)

    def range(self, start: int, end: int) -> Range:
        return Range(self.position(start), self.position(end))

    @property
    def _encoding(self) -> tuple[str, int]:
        return _UNIT_BYTES.get(self.position_codec.encoding, ("utf-16-le", 2))  # type: ignore[arg-type]  # it may be None

    def _apply_incremental_change(self, change: Any) -> None:
        start, end = self.place(change.range.start), self.place(change.range.end)
        source = self.source
        self._source = f"{source[:start]}{change.text}{source[max(start, end) :]}"


class ManuscriptWorkspace(Workspace):
    """A workspace whose documents are of our class."""

    def _create_text_document(
        self, doc_uri: str, source: Any = None, version: Any = None, language_id: Any = None
    ) -> Any:
        kind, codec = self._sync_kind, self.position_codec
        return ManuscriptDocument(doc_uri, source, version, language_id, sync_kind=kind, position_codec=codec)


def document_of(file: Path, workspace: Workspace) -> ManuscriptDocument | None:
    """A file as an editor has it, else as it is on the disk; None if it cannot be read."""
    for document in workspace.text_documents.values():
        if isinstance(document, ManuscriptDocument) and to_fs_path(document.uri) == str(file):
            return document
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return ManuscriptDocument(from_fs_path(str(file)) or "", source, position_codec=workspace.position_codec)
