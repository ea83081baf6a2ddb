"""Assigns evidence ids, in the order in which searches were requested, never in which they were answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..tools.duplicate_findings import Words, first_same
from ..tools.found_evidence import FoundEvidence


def number_evidence(
    known: Sequence[dict[str, Any]],
    searches: Sequence[Sequence[FoundEvidence]],
    given: Mapping[str, str] | None = None,
) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """New evidence records, and for each search the ids of its evidence, best first.

    A finding on the same words keeps its id, its statement and its first query; known evidence that is found for
    another need, or with a better score, is returned again to replace its record. `given` are the ids that a
    conversation has assigned so far, by `evidence_key`: each keeps its words, and none is assigned again.
    """
    ids_of_marks = {**(given or {}), **{evidence_key(record): record["id"] for record in known}}
    records = {record["id"]: record for record in known}
    words = {identifier: Words.of_record(record) for identifier, record in records.items()}
    last = max((int(identifier[1:]) for identifier in ids_of_marks.values()), default=0)
    new: dict[str, dict[str, Any]] = {}
    ids: list[list[str]] = []
    for search in searches:
        of_search: list[str] = []
        for found in search:
            record = found.as_evidence("E0").as_dict()
            mark, own = evidence_key(record), Words.of_record(record)
            identifier = ids_of_marks.get(mark)
            if identifier is None and (place := first_same(own, list(words.values()))) is not None:
                identifier = list(words)[place]
            if identifier is None:
                last += 1
                identifier = f"E{last}"
            ids_of_marks[mark] = identifier
            there = records.get(identifier)
            joined = {**record, "id": identifier} if there is None else _merged_records(there, record)
            if joined != there:
                new[identifier] = records[identifier] = joined
                words.setdefault(identifier, own)
            if identifier not in of_search:
                of_search.append(identifier)
        ids.append(of_search)
    return list(new.values()), ids


def _merged_records(there: dict[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """One record for two findings on the same words: the needs of both, with the better scores."""
    needs = dict.fromkeys([*there["also"], found["need"], *found["also"]])
    more = [need for need in needs if need and need != there["need"]]
    scores = {name: max(there[name], found[name]) for name in ("llm_score", "combined_score")}
    return {**there, **scores, **({"also": more} if more else {})}


def evidence_key(record: Mapping[str, Any]) -> str:
    """Identifies the words that a piece of evidence rests on, within the text that their chunk had.

    Chunk ids shift in an edited paper, and one chunk may hold several findings.
    """
    words = [(record["start"], record["end"])]
    words += [(span["start"], span["end"]) for span in record["more"] if span["chunk_id"] == record["chunk_id"]]
    places = ",".join(f"{start}-{end}" for start, end in words)
    return f"{record['chunk_id']} {record['chunk_hash'][:16]} {places}"
