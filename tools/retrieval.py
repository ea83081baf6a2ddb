"""Retrieves chunks for a query by meaning (vectors), by words (BM25), or both fused, and reranks them if requested.

Each hit has its true cosine, however it was found. Fused scores only order the hits of one search, since they are
scaled to that search's candidates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..documents import Chunk, Paper
from ..models.embeddings.bundled_models import Reranker
from ..settings.config import RetrievalMode
from ..stores.library import Library
from ..stores.store_protocols import TextScope
from ..stores.text_analysis import analyze
from .scope import Scope

Ranking = list[tuple[str, float]]

_POOL: Final = 4  # candidates of each kind per requested result
_LEAST_POOL: Final = 50
_RANK_DAMPING: Final = 60  # the constant of reciprocal rank fusion, as in its paper
_TABLE_WORDS: Final = 2.0  # factor on the word weight for chunks with a table, whose cells mean little to an embedding
_RERANKED: Final = 2  # reranked results per requested result
_LEAST_RERANKED: Final = 20
_SURE: Final = 1e-6  # scores of the cross-encoder are clipped to this distance from 0 and 1


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How a search retrieves and orders chunks.

    `bm25_weight` is the weight of BM25 in fused scores, relative to 1 for the vectors. `rerank` is the weight (0-1) of
    a cross-encoder in the order: 0 disables it, with 1 it alone decides.
    """

    mode: RetrievalMode = "hybrid"
    bm25_weight: float = 0.3
    rerank: float = 0.0


ALL_PAPERS: Final = Scope()
DEFAULT_OPTIONS: Final = Retrieval()
RERANKER = Reranker()  # loads its model on first use


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk with its true cosine (0-1) and its score in one search."""

    chunk: Chunk
    paper: Paper
    vector_score: float
    score: float


async def retrieve(
    library: Library, query: str, k: int, scope: Scope = ALL_PAPERS, options: Retrieval = DEFAULT_OPTIONS
) -> list[Hit]:
    """Return the `k` chunks in scope that match the query best, best first; ties are ordered by chunk id.

    Raises `FullTextError` if words are searched without a full-text index, and what the embedding raises.
    """
    ranking, cosines = await rank(library, query, k, scope, options)

    def load() -> list[Hit]:
        scores = dict(ranking)
        chunks = [chunk for chunk in library.chunks(list(scores)) if chunk.id in cosines]
        records = library.records()  # excludes papers that another process is changing
        return [
            Hit(chunk, records[chunk.key].paper, min(1.0, max(0.0, cosines[chunk.id])), scores[chunk.id])
            for chunk in chunks
            if chunk.key in records
        ]

    return await asyncio.to_thread(load)


async def rank(
    library: Library, query: str, k: int, scope: Scope = ALL_PAPERS, options: Retrieval = DEFAULT_OPTIONS
) -> tuple[Ranking, Mapping[str, float]]:
    """Return the ids that `retrieve` finds, best first with their scores, and their cosines; reads no text."""
    mode, within = options.mode, scope.to_text_scope()
    terms = [] if mode == "dense" else await asyncio.to_thread(analyze, query)
    pool = k if mode == "dense" and not options.rerank else max(_LEAST_POOL, _POOL * k)

    def matching(most: int, within: TextScope) -> Ranking:
        return library.matching(terms, most, within) if terms and most else []

    async def nearest() -> Ranking:
        return [] if mode == "bm25" else await asyncio.to_thread(library.nearest_ids, await embedded, pool, within)

    embedded = asyncio.ensure_future(library.embedding.embed_query(query))
    # The indexes release the interpreter lock while they search, so independent searches run concurrently.
    dense, words = await asyncio.gather(nearest(), asyncio.to_thread(matching, pool, within))
    # Complete the true cosines and BM25 scores of everything that either search found.
    cosines, scores = dict(dense), dict(words)
    more_cosines, more_scores = await asyncio.gather(
        asyncio.to_thread(library.cosines, await embedded, [name for name in scores if name not in cosines]),
        asyncio.to_thread(matching, len(cosines), TextScope(ids=cosines.keys() - scores.keys())),
    )
    cosines, scores = {**cosines, **more_cosines}, {**scores, **dict(more_scores)}
    if mode == "hybrid":
        tables = await asyncio.to_thread(library.described.chunks_of_tables, scores)
        ranking = weighted_fusion(cosines, scores, options.bm25_weight, tables)
    else:
        ranking = dense if mode == "dense" else words
    if options.rerank:
        ranking = await asyncio.to_thread(_rerank, library, query, ranking[: rerank_pool(k)], options.rerank)
    return ranking[:k], cosines


def _rerank(library: Library, query: str, ranking: Ranking, part: float) -> Ranking:
    chunks = library.chunks([name for name, _ in ranking])
    # A chunk may have been found through descriptions of its figures.
    texts = ["\n".join([chunk.text, *(item.description for item in library.described.of([chunk]))]) for chunk in chunks]
    judged = RERANKER.score(query, texts).tolist() if texts else []
    return rerank_ranking(ranking, dict(zip((chunk.id for chunk in chunks), judged, strict=True)), part)


def weighted_fusion(
    cosines: Mapping[str, float], words: Mapping[str, float], weight: float, tables: Collection[str] = ()
) -> Ranking:
    """Add both scores, scaled to 0-1, words by `weight`, doubled in `tables`; returns 0 to 1, best first."""
    near, far = max(cosines.values(), default=0.0), min(cosines.values(), default=0.0)
    most = max(words.values(), default=0.0)
    weights = {name: weight * (_TABLE_WORDS if name in tables else 1.0) for name in cosines}
    fused = {
        name: ((cosine - far) / (near - far) if near > far else 1.0)
        + (weights[name] * (words.get(name, 0.0) / most) if most else 0.0)
        for name, cosine in cosines.items()
    }
    return _sort_by_score({name: score / (1 + max(weights.values(), default=weight)) for name, score in fused.items()})


def reciprocal_rank_fusion(rankings: Sequence[Ranking]) -> Ranking:
    """Fuse rankings by reciprocal rank (Cormack et al. 2009): items in several rankings come higher."""
    fused: dict[str, float] = {}
    for ranking in rankings:
        for place, (name, _) in enumerate(ranking, start=1):
            fused[name] = fused.get(name, 0.0) + 1 / (_RANK_DAMPING + place)
    return _sort_by_score(fused)


def _sort_by_score(scores: Mapping[str, float]) -> Ranking:
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def rerank_pool(k: int) -> int:
    """Return how many results are reranked if `k` are requested."""
    return max(_LEAST_RERANKED, _RERANKED * k)


def rerank_ranking(ranking: Ranking, judged: Mapping[str, float], part: float) -> Ranking:
    """Order the results that a scorer judged by the weighted sum of both scores, each scaled to 0-1.

    `part` (0-1) is the scorer's weight. Ties are ordered by name.
    """
    known = [(name, score) for name, score in ranking if name in judged]
    if not known:
        return []
    sure = np.clip(np.array([judged[name] for name, _ in known], dtype=np.float64), _SURE, 1 - _SURE)
    # As log-odds, since most scores of a search are within a hundredth of 0, and their differences matter.
    fused = (1 - part) * _scale([score for _, score in known]) + part * _scale(np.log(sure / (1 - sure)))
    return _sort_by_score({name: float(score) for (name, _), score in zip(known, fused, strict=True)})


def _scale(scores: Any) -> NDArray[np.float64]:
    """Scale scores to 0-1; all 1 if they are equal."""
    raw = np.asarray(scores, dtype=np.float64)
    spread = float(np.ptp(raw))
    return (raw - raw.min()) / spread if spread else np.ones(len(raw))
