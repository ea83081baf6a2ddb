"""Searching for evidence: candidates, each read in the light of the query, the best kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from citeloom.config import RetrievalMode
from citeloom.documents import Evidence
from citeloom.models.concurrency import all_settled
from citeloom.models.roles import Candidate, EvidenceReader, Reading
from citeloom.stores.library import Library
from citeloom.tools.retrieval import Retrieval, retrieve
from citeloom.tools.scope import Scope


@dataclass(frozen=True, slots=True)
class EvidenceLimits:
    """How many chunks a search reads and keeps, and how the scores are weighed (see `config.Settings`)."""

    retrieval_mode: RetrievalMode = "hybrid"
    top_k_initial: int = 20
    top_k_final: int = 8
    per_paper: int = 2
    vector_weight: float = 0.4
    llm_weight: float = 0.6
    score_threshold: float = 0.35
    rerank: float = 0.0


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate that was read and kept; it becomes evidence when it is given an id."""

    candidate: Candidate
    reading: Reading
    combined_score: float
    query: str

    def as_evidence(self, identifier: str) -> Evidence:
        """The evidence with the id under which a writer cites it."""
        return Evidence.of(
            self.candidate.chunk,
            id=identifier,
            summary=self.reading.summary,
            start=self.reading.start,
            end=self.reading.end,
            vector_score=round(self.candidate.vector_score, 4),
            llm_score=round(self.reading.score, 4),
            combined_score=round(self.combined_score, 4),
            source_query=self.query,
        )


async def search_evidence(
    library: Library, reader: EvidenceReader, query: str, scope: Scope, limits: EvidenceLimits, *, asked: str = ""
) -> list[Found]:
    """The best readings for a query, best first, of at most `per_paper` chunks of one paper.

    `asked` is what the passages are read for, where it is not the query: a question of which the query is a part.
    """
    how = Retrieval(mode=limits.retrieval_mode, rerank=limits.rerank)
    proposed = [hit.candidate for hit in await retrieve(library, query, limits.top_k_initial, scope, how)]
    readings = await all_settled(reader.read(asked or query, candidate) for candidate in proposed)
    return select(query, list(zip(proposed, readings, strict=True)), limits)


async def best_fitting(library: Library, queries: Sequence[str], chunk_ids: Sequence[str], k: int) -> list[str]:
    """The `k` of these chunks that are nearest to any of the queries, best first; those that are gone are left out."""
    if not chunk_ids:
        return []
    nearness: dict[str, float] = {}
    for query in queries:
        vector = await library.embedding.embed_query(query)
        for name, cosine in (await asyncio.to_thread(library.cosines, vector, chunk_ids)).items():
            nearness[name] = max(cosine, nearness.get(name, -1.0))
    return sorted(nearness, key=lambda name: (-nearness[name], name))[:k]


def select(query: str, read: Sequence[tuple[Candidate, Reading | None]], limits: EvidenceLimits) -> list[Found]:
    """The readings at or above the threshold, by combined score; equal scores go by chunk id."""
    found = [
        Found(
            candidate,
            reading,
            limits.vector_weight * candidate.vector_score + limits.llm_weight * reading.score,
            query,
        )
        for candidate, reading in read
        if reading is not None and reading.score >= limits.score_threshold
    ]
    found.sort(key=lambda item: (-item.combined_score, item.candidate.chunk.id))
    kept: list[Found] = []
    of_paper: Counter[str] = Counter()
    for item in found:
        key = item.candidate.paper.key
        if of_paper[key] < limits.per_paper and len(kept) < limits.top_k_final:
            of_paper[key] += 1
            kept.append(item)
    return kept
