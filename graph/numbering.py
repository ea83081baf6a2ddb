"""Evidence ids: given in the order in which searches were asked for, never in which they were answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from citeloom.tools import Found


def number_evidence(
    known: Sequence[dict[str, Any]], searches: Sequence[Sequence[Found]]
) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """New evidence records, and for each search the ids of its evidence, best first.

    A chunk that is evidence already keeps its id, its quote and its first query.
    """
    by_chunk = {record["chunk_id"]: record["id"] for record in known}
    # Counted on from the highest: what a conversation recalls has gaps.
    last = max((int(record["id"][1:]) for record in known), default=0)
    new: list[dict[str, Any]] = []
    ids: list[list[str]] = []
    for search in searches:
        of_search: list[str] = []
        for found in search:
            chunk_id = found.candidate.chunk.id
            if chunk_id not in by_chunk:
                last += 1
                by_chunk[chunk_id] = f"E{last}"
                new.append(found.as_evidence(by_chunk[chunk_id]).as_dict())
            of_search.append(by_chunk[chunk_id])
        ids.append(of_search)
    return new, ids
