"""Evidence ids: given in the order in which searches were asked for, never in which they were answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from citeloom.tools import Found


def number_evidence(
    known: Sequence[dict[str, Any]],
    searches: Sequence[Sequence[Found]],
    given: Mapping[str, str] | None = None,
) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """New evidence records, and for each search the ids of its evidence, best first.

    A finding on the same words keeps its id, its statement and its first query. `given` are the ids that a
    conversation has given so far, by `mark_of`: each keeps its words, and none is given again.
    """
    ids_of_marks = {**(given or {}), **{mark_of(record): record["id"] for record in known}}
    there = {record["id"] for record in known}
    last = max((int(identifier[1:]) for identifier in ids_of_marks.values()), default=0)
    new: list[dict[str, Any]] = []
    ids: list[list[str]] = []
    for search in searches:
        of_search: list[str] = []
        for found in search:
            mark = mark_of(found.as_evidence("E0").as_dict())
            if mark not in ids_of_marks:
                last += 1
                ids_of_marks[mark] = f"E{last}"
            identifier = ids_of_marks[mark]
            if identifier not in there:
                there.add(identifier)
                new.append(found.as_evidence(identifier).as_dict())
            if identifier not in of_search:
                of_search.append(identifier)
        ids.append(of_search)
    return new, ids


def mark_of(record: Mapping[str, Any]) -> str:
    """Names the words that a piece of evidence rests on, in the text that their chunk had.

    Ids of chunks shift in an edited paper, and one chunk may hold several findings.
    """
    words = [(record["start"], record["end"])]
    words += [(span["start"], span["end"]) for span in record.get("more", ()) if span["chunk_id"] == record["chunk_id"]]
    places = ",".join(f"{start}-{end}" for start, end in words)
    return f"{record['chunk_id']} {record['chunk_hash'][:16]} {places}"
