"""Retrieves chunks for a query: by meaning (vectors), by words (BM25), or fused; the best, or the most diverse.

Each hit carries its true cosine, however it was found. Fused scores order the hits of one search but do not measure
how good they are: they are scaled to that search's candidates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..models.embeddings.bundled_models import Reranker
from ..models.embeddings.protocol import Vector
from ..roles.protocols import Candidate
from ..settings.config import RetrievalMode
from ..stores.library import Library
from ..stores.text_analysis import analyze
from .scope import Scope

Fusion = Literal["score", "rank"]
Ranking = list[tuple[str, float]]

_POOL: Final = 4  # candidates of each kind for each result requested
_LEAST_POOL: Final = 50
_RANK_DAMPING: Final = 60  # the constant of reciprocal rank fusion, as in its paper
_TABLE_WORDS: Final = 2.0  # word weight for chunks with a table, whose cells mean little to an embedding


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How a search retrieves and orders chunks.

    `bm25_weight` is the weight of BM25 relative to a weight of 1 for the vectors when scores are fused. `mmr` is None,
    or the weight (0-1) of relevance against diversity. `min_cosine` drops chunks that are further away; with the
    bundled model most pairs of texts are above 0.5, so a threshold must be found for each model. `rerank` is the weight
    (0-1) of a cross-encoder in the order: 0 disables it, with 1 it alone decides.
    """

    mode: RetrievalMode = "hybrid"
    fusion: Fusion = "score"
    bm25_weight: float = 0.3
    mmr: float | None = None
    min_cosine: float | None = None
    rerank: float = 0.0


ALL_PAPERS: Final = Scope()
DEFAULT_OPTIONS: Final = Retrieval()
BUNDLED_RERANKER: Final = Reranker()  # loads its model on first use


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk with its score in one search; its candidate holds the true cosine."""

    candidate: Candidate
    score: float


async def retrieve(
    library: Library,
    query: str,
    k: int,
    scope: Scope = ALL_PAPERS,
    options: Retrieval = DEFAULT_OPTIONS,
    scorer: PairScorer = BUNDLED_RERANKER,
) -> list[Hit]:
    """The `k` chunks in scope that match the query best, best first; ties are ordered by chunk id.

    `scorer` re-ranks when `options` say so. Raises `FullTextError` when words are searched and there is no full-text
    index, and whatever the embedding raises.
    """
    return await asyncio.to_thread(_load_hits, library, *await rank(library, query, k, scope, options, scorer))


async def rank(
    library: Library,
    query: str,
    k: int,
    scope: Scope = ALL_PAPERS,
    options: Retrieval = DEFAULT_OPTIONS,
    scorer: PairScorer = BUNDLED_RERANKER,
) -> tuple[Ranking, Mapping[str, float]]:
    """The ids that `retrieve` finds, best first with their scores, and their cosines; no text is read."""
    terms = [] if options.mode == "dense" else await asyncio.to_thread(analyze, query)
    plain = options.mode == "dense" and options.mmr is None and options.min_cosine is None and not options.rerank
    pool = k if plain else max(_LEAST_POOL, _POOL * k)
    # The indexes release the interpreter lock while they search, so independent searches run concurrently.
    (vector, dense), words = await asyncio.gather(
        _nearest(library, query, 0 if options.mode == "bm25" else pool, scope),
        asyncio.to_thread(_matching, library, terms, pool, **scope.limits()),
    )
    cosines, scores = await _both_scores(library, terms if options.fusion == "score" else [], vector, dense, words)
    if options.mode == "dense":
        ranking = dense
    elif options.mode == "bm25":
        ranking = words
    elif options.fusion == "rank":
        ranking = reciprocal_rank_fusion([dense, words])
    else:
        ranking = weighted_fusion(
            cosines, scores, options.bm25_weight, await asyncio.to_thread(library.tables.among, scores)
        )
    return await asyncio.to_thread(_choose, library, query, ranking, cosines, k, options, scorer), cosines


async def _nearest(library: Library, query: str, k: int, scope: Scope) -> tuple[Vector, Ranking]:
    vector = await library.embedding.embed_query(query)
    return vector, await asyncio.to_thread(library.nearest_ids, vector, k, **scope.limits()) if k else []


async def _both_scores(
    library: Library, terms: Sequence[str], vector: Vector, dense: Ranking, words: Ranking
) -> tuple[dict[str, float], dict[str, float]]:
    """The true cosine and the BM25 score of everything that either search found."""
    cosines, scores = dict(dense), dict(words)
    more_cosines, more_scores = await asyncio.gather(
        asyncio.to_thread(library.cosines, vector, [name for name in scores if name not in cosines]),
        asyncio.to_thread(_matching, library, terms, len(cosines), ids=cosines.keys() - scores.keys()),
    )
    return {**cosines, **more_cosines}, {**scores, **dict(more_scores)}


def _matching(library: Library, terms: Sequence[str], k: int, **limits: Any) -> Ranking:
    return library.matching(terms, k, **limits) if terms and k else []


def _choose(
    library: Library,
    query: str,
    ranking: Ranking,
    cosines: Mapping[str, float],
    k: int,
    options: Retrieval,
    scorer: PairScorer,
) -> Ranking:
    if options.min_cosine is not None:
        ranking = [(name, score) for name, score in ranking if cosines.get(name, -1.0) >= options.min_cosine]
    if options.rerank:
        best = ranking[: rerank_pool(k)]
        # A chunk may have been found through descriptions of its figures.
        texts = {
            chunk.id: "\n".join([chunk.text, *(figure.description for figure in library.described.of([chunk]))])
            for chunk in library.chunks([name for name, _ in best])
        }
        ranking = rerank_ranking(best, texts, query, options.rerank, scorer)
    if options.mmr is not None and len(ranking) > 1:
        vectors = library.store.get_vectors([name for name, _ in ranking])
        ranking = maximal_marginal_relevance([item for item in ranking if item[0] in vectors], vectors, k, options.mmr)
    return ranking[:k]


def _load_hits(library: Library, ranking: Ranking, cosines: Mapping[str, float]) -> list[Hit]:
    scores = dict(ranking)
    chunks = [chunk for chunk in library.chunks(list(scores)) if chunk.id in cosines]
    records = library.records()  # without papers that another process is changing
    return [
        Hit(Candidate(chunk, records[chunk.key].paper, min(1.0, max(0.0, cosines[chunk.id]))), scores[chunk.id])
        for chunk in chunks
        if chunk.key in records
    ]


def weighted_fusion(
    cosines: Mapping[str, float], words: Mapping[str, float], weight: float, tables: Collection[str] = ()
) -> Ranking:
    """Add both scores, scaled to 0-1 over the candidates, with `weight` for the words, doubled in `tables`.

    Returns scores from 0 to 1, best first.
    """
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
    """Reciprocal rank fusion: items that rank high in any ranking, higher when in several."""
    fused: dict[str, float] = {}
    for ranking in rankings:
        for place, (name, _) in enumerate(ranking, start=1):
            fused[name] = fused.get(name, 0.0) + 1 / (_RANK_DAMPING + place)
    return _sort_by_score(fused)


def maximal_marginal_relevance(ranking: Ranking, vectors: Mapping[str, Vector], k: int, relevance: float) -> Ranking:
    """Maximal marginal relevance: `k` items of the ranking, each good and unlike those before it.

    `relevance` weights a score, scaled to 0-1, against the cosine to the most similar item already chosen.
    """
    names = [name for name, _ in ranking]
    scaled = _scale([score for _, score in ranking])
    matrix = np.stack([vectors[name] for name in names]).astype(np.float64)
    likeness = np.zeros(len(names))
    left = np.ones(len(names), dtype=bool)
    chosen: list[int] = []
    while left.any() and len(chosen) < k:
        marginal = np.where(left, relevance * scaled - (1 - relevance) * likeness, -np.inf)
        best = int(marginal.argmax())  # the first of ties: the ranking's own order
        chosen.append(best)
        left[best] = False
        likeness = np.maximum(likeness, matrix @ matrix[best])
    return [ranking[place] for place in chosen]


def _sort_by_score(scores: Mapping[str, float]) -> Ranking:
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


# How many results of the search are re-ranked for each one requested, and the minimum in total.
_RERANKED: Final = 2
_LEAST_RERANKED: Final = 20
_SURE: Final = 1e-6  # scores are clipped to this distance from 0 and 1


class PairScorer(Protocol):
    """Scores texts for a query, 0-1, [n] in their order; blocks."""

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]: ...


def rerank_pool(k: int) -> int:
    """How many results are re-ranked when `k` are requested."""
    return max(_LEAST_RERANKED, _RERANKED * k)


def rerank_ranking(
    ranking: Sequence[tuple[str, float]], texts: Mapping[str, str], query: str, part: float, scorer: PairScorer
) -> list[tuple[str, float]]:
    """The results with a text, by the scores of search and scorer, each scaled to 0-1, the latter weighted by `part`.

    With a part of 1 the scorer alone decides. Ties are ordered by name.
    """
    known = [(name, score) for name, score in ranking if name in texts]
    if not known:
        return []
    judged = np.clip(scorer.score(query, [texts[name] for name, _ in known]).astype(np.float64), _SURE, 1 - _SURE)
    # Log-odds: most scores of a search are within a hundredth of 0, and their differences matter.
    fused = (1 - part) * _scale([score for _, score in known]) + part * _scale(np.log(judged / (1 - judged)))
    scored = [(name, float(score)) for (name, _), score in zip(known, fused, strict=True)]
    return sorted(scored, key=lambda item: (-item[1], item[0]))


def _scale(scores: Any) -> NDArray[np.float64]:
    """The scores scaled to 0-1; all 1 when they are equal."""
    raw = np.asarray(scores, dtype=np.float64)
    spread = float(np.ptp(raw))
    return (raw - raw.min()) / spread if spread else np.ones(len(raw))
