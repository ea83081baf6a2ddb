"""Reads windows without a chat model: the sentences nearest to each need, scored by embedding and cross-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ...documents import Chunk
from ...documents.chunking import Window
from ...models.concurrency import gather_all
from ...text.words import is_stop, stem, words_of
from ..needs import Need, Purpose
from ..protocols import PassageFinding
from .quotable_sentences import QuotablePassage, quotable_passages
from .relevance import Relevance, as_score
from .sentence_vectors import SentenceVectors

_COMPARED: Final = 4  # sentences of a chunk: those with most words of the need
_LENGTH: Final = 8  # words added to a sentence's length, so that short ones do not win by being short
_UNJUDGED: Final = 0.5  # for a passage that no model here can judge: only the order of the search is known
# Weights of cosine to the subject, cosine to the need and log-odds of the cross-encoder, each around its even point.
_SUBJECT: Final = (20.0, 0.68)
_NEED: Final = (30.0, 0.70)
_CROSS: Final = 0.3
_EVEN: Final = 0.1
_SPREAD: Final = 2.0


class StatementReader:
    """Implements `EvidenceReader` for sections: the sentences nearest to what the author states.

    A cross-encoder was trained on questions, so here it has a say beside two cosines: to the statement, and to the
    subject of the experiment, without which one word in two senses would bring two fields together.
    """

    def __init__(self, vectors: SentenceVectors, relevance: Relevance) -> None:
        self._vectors = vectors
        self._relevance = relevance

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        """At most one finding for each chunk and need, best first."""
        found = await gather_all(
            self._finding(purpose, need, window, name)
            for window in windows
            for name in window.hits
            for need in purpose.named(window.needs) or purpose.needs[:1]
        )
        return sorted((item for item in found if item), key=lambda item: -item.score)

    async def _finding(self, purpose: Purpose, need: Need, window: Window, name: str) -> PassageFinding | None:
        chunk = next(chunk for chunk in window.chunks if chunk.id == name)
        passages = closest_by_words(need.queries, chunk)
        if not passages:
            return None
        asked = np.array([await self._vectors.of_query(query) for query in need.queries])
        rows = await self._vectors.of([passage.text for passage in passages])
        near = rows @ asked.T
        best = int(near.max(axis=1).argmax())
        query, cosine = need.queries[int(near[best].argmax())], float(near[best].max())
        subject = float(rows[best] @ await self._vectors.of_query(purpose.text))
        words = f"{window.paper.title}. {' '.join(passages[best].text.split())}"
        cross = await self._relevance.cross_odds(query, [words])
        odds = _CROSS * cross[0] + _NEED[0] * (cosine - _NEED[1]) + _SUBJECT[0] * (subject - _SUBJECT[1])
        return _finding(window, chunk, passages[best], as_score(odds, _EVEN, _SPREAD), need)


class QuestionReader:
    """Implements `EvidenceReader` for questions: a passage is judged whole, then its sentence nearest to the need.

    A passage counts by the clause of the question that it fits best.
    """

    def __init__(self, vectors: SentenceVectors, relevance: Relevance) -> None:
        self._vectors = vectors
        self._relevance = relevance

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        """A finding for each chunk with a quotable sentence, best first."""
        found = await gather_all(self._finding(purpose, window, name) for window in windows for name in window.hits)
        return sorted((item for item in found if item), key=lambda item: -item.score)

    async def _finding(self, purpose: Purpose, window: Window, name: str) -> PassageFinding | None:
        chunk = next(chunk for chunk in window.chunks if chunk.id == name)
        needs = purpose.named(window.needs) or purpose.needs[:1]
        judged = self._relevance.can_judge(purpose.text)
        if not judged and not self._relevance.multilingual:
            return None
        cosine = np.array([window.cosine_of(name)])
        odds = [
            float((await self._relevance.odds(need.text, [chunk.text], cosine))[0]) if judged else 0.0 for need in needs
        ]
        need = needs[int(np.argmax(odds))]
        passages = closest_by_words(need.queries, chunk)
        if not passages:
            return None
        texts = [passage.text for passage in passages]
        cosines = await self._vectors.of(texts) @ await self._vectors.of_query(need.text)
        said = await self._relevance.odds(need.text, texts, cosines) if judged else cosines
        score = as_score(max(odds)) if judged else _UNJUDGED
        return _finding(window, chunk, passages[int(np.argmax(said))], score, need)


def closest_by_words(queries: Sequence[str], chunk: Chunk) -> list[QuotablePassage]:
    """The quotable sentences of a chunk that share most words with the queries."""
    asked = _stems(" ".join(queries))
    return sorted(
        quotable_passages(chunk.text),
        key=lambda passage: -len(_stems(passage.text) & asked) / (len(passage.text.split()) + _LENGTH) ** 0.5,
    )[:_COMPARED]


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word.surface) for word in words_of(text) if not is_stop(word))


def _finding(window: Window, chunk: Chunk, passage: QuotablePassage, score: float, need: Need) -> PassageFinding:
    spans = ((chunk, passage.start, passage.end),)
    words = " ".join(passage.text.split())
    return PassageFinding(window.paper, words, score, need.id, spans, window.cosine_of(chunk.id))
