"""Escapes HTML in markdown, so that tags from a model or a source are shown as plain characters.

This applies to text that Citeloom and models write to files. Listings of the library (`search`, `find`, `papers`) are
data: their JSON holds the unmodified words of papers, so that spans stay valid.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

# The start of a CommonMark tag, comment, processing instruction or declaration, or of a non-web autolink. `a<b` does
# not count, since formulas contain it.
_LIVE = re.compile(r"<(?!https?://[^\s<>]+>)(?=[!?]|/?[A-Za-z][A-Za-z0-9-]*(?:[\s/>:]|\Z)|[A-Za-z][\w.+-]*[:@])")
_SCRIPT = re.compile(r"(?<=\])(?=[(:]\s*+<?\s*+(?:javascript|vbscript|data):)", re.IGNORECASE)
_ENTITY: Final = "&lt;"

# Fields that are compared, looked up or opened, and the words of a source, which must match its chunk.
_EXACT: Final = frozenset(
    {
        *("id", "key", "keys", "thread_id", "chunk_id", "evidence_id", "evidence_ids", "chunk_hash"),
        *("quote", "chunk_text", "suspicious", "field", "path", "file", "files", "csl", "doi", "url"),
    }
)
_PARTS: Final = ("sections", "turns")  # nested records with spans in their own text
_WITH_SPANS: Final = ("findings", "numbers", "own_citations")


def inert(markdown: str) -> str:
    """The escaped text for files and JSON; it displays as the same characters."""
    return _SCRIPT.sub(r"\\", _LIVE.sub(_ENTITY, markdown))


def inert_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON record of a section, paper or answer with displayed text escaped and spans adjusted.

    Words of sources and identifiers stay exact; records that are already escaped stay unchanged.
    """
    moves = _Moves.of(str(record.get("text", "")))
    placed = {name: [_inert(_moved(item, moves)) for item in record[name]] for name in _WITH_SPANS if name in record}
    return {name: value if name in _PARTS else _inert_field(name, value) for name, value in record.items()} | placed


@dataclass(frozen=True, slots=True)
class _Moves:
    """A text before and after escaping, with the positions where it grew."""

    before: str
    after: str
    tags: tuple[int, ...]
    links: tuple[int, ...]  # positions of tags in the text that are already escaped

    @classmethod
    def of(cls, text: str) -> _Moves:
        without_tags = _LIVE.sub(_ENTITY, text)
        tags = tuple(match.start() for match in _LIVE.finditer(text))
        return cls(text, inert(text), tags, tuple(match.start() for match in _SCRIPT.finditer(without_tags)))

    def __call__(self, position: int) -> int:
        moved = position + (len(_ENTITY) - 1) * bisect_left(self.tags, position)
        return moved + bisect_left(self.links, moved)


def _moved(item: Mapping[str, Any], moves: _Moves) -> dict[str, Any]:
    start, end = item["start"], item["end"]
    if start is None:
        return dict(item)
    here = slice(moves(start), moves(end))
    words = {name: moves.after[here] for name in ("text", "citation") if item.get(name) == moves.before[start:end]}
    return {**item, **words, "start": here.start, "end": here.stop}


def _inert(value: Any) -> Any:
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, Mapping):
        return {name: _inert_field(name, item) for name, item in value.items()}
    return [_inert(item) for item in value] if isinstance(value, list | tuple) else value


def _inert_field(name: str, value: Any) -> Any:
    return value if name in _EXACT else _inert(value)
