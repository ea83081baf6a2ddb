"""States of graphs older than planned needs, to be resumed by the current graphs."""

from __future__ import annotations

from typing import Any

from citeloom.documents import Chunk, Evidence
from citeloom.text.sentences import sentence_spans

_BEGUN: dict[str, Any] = {
    "messages": [],
    "queries": [],
    "evidence": [],
    "searches_used": 0,
    "agent_turns": 0,
    "warnings": [],
    "pending_calls": [],
    "searching": False,
    "before_repair": None,
    "repairs": 0,
    "repairing": False,
    "findings": [],
    "verdicts": [],
    "text": "",
    "result": {},
}


def begun_before_needs(question: str) -> dict[str, Any]:
    """The state of a routed question, without its route."""
    return {**_BEGUN, "question": question, "shortlist": [], "found": [], "answered": False}


def section_before_needs(kind: str, experiment: dict[str, Any], queries: list[str]) -> dict[str, Any]:
    """The state of a section whose default queries are known and have found nothing yet."""
    records = [
        {"section": kind, "query": query, "origin": "default", "scope": {}, "evidence_ids": []} for query in queries
    ]
    return {**_BEGUN, "section": kind, "experiment": experiment, "queries": records}


def found_before_needs(chunk: Chunk, query: str) -> dict[str, Any]:
    """Evidence in the record format of that time: one run of words, without a need."""
    start, end = sentence_spans(chunk.text)[0]
    scores: dict[str, Any] = {"vector_score": 0.8, "llm_score": 0.9, "combined_score": 0.86}
    made = Evidence.of(chunk, id="E1", summary="It says so.", start=start, end=end, source_query=query, **scores)
    record = made.as_dict()
    del record["need"], record["more"]
    return record
