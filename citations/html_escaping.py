"""Markdown in which no HTML comes alive: a tag of a model or a source stays the characters it is made of.

This is for what Citeloom and models write, and files show. What only lists the library (`search`, `find`, `papers`) is
data: its JSON holds the words of papers as they are, so that spans count in them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

# A tag, comment, instruction or declaration as CommonMark begins one, and an address in angle brackets, but for those
# of the web. `a<b` is none of these: formulas hold it.
_LIVE = re.compile(r"<(?!https?://[^\s<>]+>)(?=[!?]|/?[A-Za-z][A-Za-z0-9-]*(?:[\s/>:]|\Z)|[A-Za-z][\w.+-]*[:@])")
_SCRIPT = re.compile(r"(?<=\])(?=[(:]\s*+<?\s*+(?:javascript|vbscript|data):)", re.IGNORECASE)
_ENTITY: Final = "&lt;"

# What is compared, looked up or opened, and the words of a source, which stand at their place in its chunk.
_EXACT: Final = frozenset(
    {
        *("id", "key", "keys", "thread_id", "chunk_id", "evidence_id", "evidence_ids", "chunk_hash"),
        *("quote", "chunk_text", "suspicious", "field", "path", "file", "files", "csl", "doi", "url"),
    }
)
_PARTS: Final = ("sections", "turns")  # records of their own, with spans in a text of their own
_WITH_SPANS: Final = ("findings", "numbers", "own_citations")


def inert(markdown: str) -> str:
    """The text as files and JSON hold it; a page shows the same characters."""
    return _SCRIPT.sub(r"\\", _LIVE.sub(_ENTITY, markdown))


def inert_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a section, a paper or an answer for its JSON: what is shown is inert, spans are in that text.

    Exact stay the words of sources and what names something; records that are inert already stay as they are.
    """
    moves = _Moves.of(str(record.get("text", "")))
    done: dict[str, Any] = {}
    for name, value in record.items():
        if name in _PARTS:
            done[name] = value
        elif name in _WITH_SPANS:
            done[name] = [_inert(_moved(item, moves)) for item in value]
        else:
            done[name] = _inert_field(name, value)
    return done


@dataclass(frozen=True, slots=True)
class _Moves:
    """A text and what it became, with the places where it grew."""

    before: str
    after: str
    tags: tuple[int, ...]
    links: tuple[int, ...]  # places in the text whose tags are inert already

    @classmethod
    def of(cls, text: str) -> _Moves:
        without_tags = _LIVE.sub(_ENTITY, text)
        tags, links = (
            [match.start() for match in found] for found in (_LIVE.finditer(text), _SCRIPT.finditer(without_tags))
        )
        return cls(text, inert(text), tuple(tags), tuple(links))

    def __call__(self, position: int) -> int:
        moved = position + (len(_ENTITY) - 1) * bisect_left(self.tags, position)
        return moved + bisect_left(self.links, moved)


def _moved(item: Mapping[str, Any], moves: _Moves) -> dict[str, Any]:
    """A record with its span in the new text; what it says to stand there is what stands there now."""
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
