"""Detects queries that nearly repeat an earlier one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from ..drafts.written_draft import QueryRecord

_WORD = re.compile(r"\w+")
_SMALL = frozenset(
    """a an the of and or in on for to with by from as at is are was were be been how what which do does""".split()
)
NEARLY: Final = 0.8


def answered_before(query: str, scope: dict[str, Any], records: Sequence[QueryRecord]) -> QueryRecord | None:
    """The first record with the same scope whose words nearly match `query` (Jaccard of at least 0.8)."""
    words = _words(query)
    for record in records:
        if record["scope"] == scope and _overlap(words, _words(record["query"])) >= NEARLY:
            return record
    return None


def _words(query: str) -> frozenset[str]:
    found = frozenset(word.removesuffix("s") for word in _WORD.findall(query.lower()) if word not in _SMALL)
    return found or frozenset(_WORD.findall(query.lower()))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))
