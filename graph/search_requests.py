"""Turns the agent's search requests into state records, and finds those that repeat an earlier search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, cast

from ..drafts.written_draft import QueryRecord, new_query
from ..roles.protocols import Need, Purpose
from ..tools.scope import Scope
from ..tools.tool_schemas import SearchEvidence, ToolRequest
from .state import RunState, SectionState

_WORD = re.compile(r"\w+")
_SMALL = frozenset(
    """a an the of and or in on for to with by from as at is are was were be been how what which do does""".split()
)
NEARLY: Final = 0.8


def answered_before(query: str, scope: dict[str, Any], records: Sequence[QueryRecord]) -> QueryRecord | None:
    """The first record with the same scope whose words nearly match `query` (Jaccard of at least 0.8)."""
    words = _words(query)
    for record in records:
        other = _words(record["query"])
        if record["scope"] == scope and len(words & other) >= NEARLY * max(1, len(words | other)):
            return record
    return None


def _words(query: str) -> frozenset[str]:
    found = frozenset(word.removesuffix("s") for word in _WORD.findall(query.lower()) if word not in _SMALL)
    return found or frozenset(_WORD.findall(query.lower()))


def earlier_search(request: ToolRequest, records: Sequence[QueryRecord], within: Scope) -> QueryRecord | None:
    """The answered search that a request repeats, if any."""
    if not isinstance(request, SearchEvidence):
        return None
    return answered_before(request.query, request.scope().narrowed(within).as_dict(), records)


def split_repeats(
    requests: Sequence[ToolRequest], known: Sequence[QueryRecord], within: Scope
) -> tuple[dict[int, QueryRecord], dict[int, QueryRecord]]:
    """Records of new searches, still without evidence, and the earlier records that repeated searches match.

    Both are keyed by request index; a search may repeat another one of the same turn.
    """
    new: dict[int, QueryRecord] = {}
    repeated: dict[int, QueryRecord] = {}
    for number, request in enumerate(requests):
        if not isinstance(request, SearchEvidence):
            continue
        earlier = earlier_search(request, [*known, *new.values()], within)
        if earlier is None:
            new[number] = query_record(request, within)
        else:
            repeated[number] = earlier
    return new, repeated


def own_first(state: RunState) -> list[QueryRecord]:
    """All answered searches; those of a paper's earlier sections come after the section's own."""
    return sorted(state.get("queries", []), key=lambda record: of_earlier_section(record, state))


def of_earlier_section(record: QueryRecord, state: RunState) -> bool:
    """Whether another section of the same paper made the search."""
    section = cast(SectionState, state).get("section")
    return record.get("section", section) != section


def of_section(record: QueryRecord, state: RunState) -> QueryRecord:
    """The record assigned to the current section; a question has no section."""
    section = cast(SectionState, state).get("section")
    return {**record, "section": section} if section else record


def query_record(request: SearchEvidence, within: Scope) -> QueryRecord:
    """The record of a search that has no evidence yet."""
    scope = request.scope().narrowed(within).as_dict()
    needs = [request.need.strip().upper()] if request.need else []
    return new_query(request.query, "custom", needs, scope)


def need_of(request: SearchEvidence, purpose: Purpose) -> Need:
    """The need that a search serves, with the planner's query; without a need the query itself is the need."""
    named = purpose.named([request.need.strip().upper()])
    return replace(named[0], queries=(request.query,)) if named else Need("", request.query, (request.query,))
