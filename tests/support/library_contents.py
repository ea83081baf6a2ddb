"""Everything that two libraries must have in common to count as equal."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from citeloom.ingestion.doctor import examine
from citeloom.stores.library import Library
from citeloom.stores.text_analysis import analyze

QUESTIONS = ("loom procedure trials", "reads and kmers of a genome", "how was the outcome measured")


async def require_equal(library: Library, other: Library) -> None:
    """Assert that both hold the same papers, sections, chunks, words and vectors, and answer searches alike."""
    assert library.version() == other.version()
    assert library.records() == other.records()
    assert [finding for finding in examine(library) if finding.level == "problem"] == []
    for key in library.records():
        assert library.sections(key) == other.sections(key)
        assert library.paper_chunks(key) == other.paper_chunks(key)
    assert library.catalog.chunk_rows() == other.catalog.chunk_rows()
    assert library.fulltext.entries() == other.fulltext.entries()
    require_near(_vectors(library), _vectors(other))
    for question in QUESTIONS:
        assert await _found(library, question) == await _found(other, question)


def require_near(vectors: dict[str, Any], others: dict[str, Any]) -> None:
    assert vectors.keys() == others.keys()
    for name, vector in vectors.items():
        assert np.allclose(vector, others[name], rtol=0, atol=1e-6), name


def _vectors(library: Library) -> dict[str, Any]:
    summaries = library.store.get_vectors(sorted(library.records()), "summaries")
    notes = library.store.get_vectors(sorted(library.store.stored_ids("notes")), "notes")
    chunks = library.store.get_vectors(sorted(library.store.stored_ids()))
    return {**chunks, **{f"summary of {key}": row for key, row in summaries.items()}, **notes}


async def _found(library: Library, question: str) -> tuple[Any, Any, Any]:
    query = await library.embedding.embed_query(question)
    terms = analyze(question)
    words = [(name, round(score, 4)) for name, score in library.matching(terms, 10_000)]  # all, as equals have no order
    nearest = [(name, round(score, 5)) for name, score in library.nearest_ids(query, 20)]
    papers = [(near.paper.key, near.note, round(near.score, 5)) for near in library.nearest_papers(query, 5)]
    return sorted(words), nearest, papers


def converted(home: Path) -> dict[str, Any]:
    """What the home caches of converted files."""
    return {file.name: json.loads(file.read_bytes()) for file in sorted((home / "converted").glob("*.json"))}


def without_seconds(report: Any) -> Any:
    return replace(report, seconds=0)
