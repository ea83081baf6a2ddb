"""Escapes HTML in markdown, so that tags from a model or a source are shown as plain characters.

This applies to text that Citeloom and models write to files. Listings of the library (`search`, `find`, `papers`) are
data: their JSON holds the unmodified words of papers, so that spans stay valid.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
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
    """The record with displayed text escaped, unless it already is, and spans adjusted; sources' words stay exact."""
    text = str(record.get("text", ""))
    after, without_tags = inert(text), _LIVE.sub(_ENTITY, text)
    tags = [match.start() for match in _LIVE.finditer(text)]
    links = [match.start() for match in _SCRIPT.finditer(without_tags)]

    def moved(position: int) -> int:
        behind_tags = position + (len(_ENTITY) - 1) * bisect_left(tags, position)
        return behind_tags + bisect_left(links, behind_tags)

    def placed(item: Mapping[str, Any]) -> dict[str, Any]:
        start, end = item["start"], item["end"]
        if start is None:
            return dict(item)
        here = slice(moved(start), moved(end))
        words = {name: after[here] for name in ("text", "citation") if item.get(name) == text[start:end]}
        return {**item, **words, "start": here.start, "end": here.stop}

    lists = {name: [_inert(placed(item)) for item in record[name]] for name in _WITH_SPANS if name in record}
    return {name: value if name in _PARTS else _inert_field(name, value) for name, value in record.items()} | lists


def _inert(value: Any) -> Any:
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, Mapping):
        return {name: _inert_field(name, item) for name, item in value.items()}
    return [_inert(item) for item in value] if isinstance(value, list | tuple) else value


def _inert_field(name: str, value: Any) -> Any:
    return value if name in _EXACT else _inert(value)
