"""Judges without a chat model whether a passage is relevant to a question: cross-encoder and vectors must agree.

The cosine alone is not enough: with the bundled embedding, questions about another field come as close to a library as
half of those that it answers (docs/decisions/off-topic-questions.md). The cross-encoder was trained on questions and
separates the two, except for questions that use the library's words for other matters, which have lower cosines.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...models.embeddings.bundled_weights import EMBEDDER
from ...models.embeddings.protocol import EmbeddingModel, Vectors
from ...models.embeddings.reranker import Reranker
from ...text.normalize import is_latin

# Weights of the cross-encoder's log-odds and of the bundled embedding's cosine, around the point where both are even.
_COSINE_WEIGHT: Final = 30.0
_COSINE_EVEN: Final = 0.70
# The point of even odds that a passage is near to a question or one of its parts, and the slope around it.
EVEN: Final = -5.0
_SPREAD: Final = 5.0
_SURE: Final = 1e-6
_KEPT: Final = 20_000


class Relevance:
    """Scores texts for a question; caches the latest scores of the cross-encoder, which take 50 ms per passage."""

    def __init__(self, embedding: EmbeddingModel, reranker: Reranker) -> None:
        self._bundled = embedding.name.endswith(EMBEDDER.name)
        self._reranker = reranker
        self._scores: OrderedDict[tuple[str, str], float] = OrderedDict()

    def can_judge(self, question: str) -> bool:
        """True when the models know the question's script; the bundled ones read English only."""
        return is_latin(question)

    @property
    def multilingual(self) -> bool:
        """True when the embedding may know languages other than English."""
        return not self._bundled

    async def odds(self, question: str, texts: Sequence[str], cosines: Vectors) -> NDArray[np.float64]:
        """Log-odds that each text is relevant to the question, [n]; `cosines` are those of the same texts, [n]."""
        judged = await self.cross_odds(question, texts)
        if not self._bundled:
            return judged
        weighed: NDArray[np.float64] = judged + _COSINE_WEIGHT * (np.asarray(cosines, dtype=np.float64) - _COSINE_EVEN)
        return weighed

    async def cross_odds(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Log-odds by the cross-encoder alone that each text answers the query, [n]."""
        return np.array(await asyncio.to_thread(self._judged, query, texts), dtype=np.float64)

    def _judged(self, question: str, texts: Sequence[str]) -> list[float]:
        missing = [text for text in dict.fromkeys(texts) if (question, text) not in self._scores]
        if missing:
            raw = np.clip(self._reranker.score(question, missing).astype(np.float64), _SURE, 1 - _SURE)
            for text, odds in zip(missing, np.log(raw / (1 - raw)).tolist(), strict=True):
                self._scores[question, text] = odds
        found = [self._scores[question, text] for text in texts]
        while len(self._scores) > _KEPT:
            self._scores.popitem(last=False)
        return found


def as_score(odds: float, even: float = EVEN, spread: float = _SPREAD) -> float:
    """Log-odds as the score of a reading, 0-1: 0.5 at even odds."""
    return float(1 / (1 + np.exp(-(odds - even) / spread)))
