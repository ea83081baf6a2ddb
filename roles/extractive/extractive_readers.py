"""Reads windows without a chat model: the sentences nearest to each need, scored by embedding and cross-encoder.

The cosine alone does not tell whether a passage is relevant to a question: with the bundled embedding, questions about
another field come as close to a library as half of those that it answers (docs/decisions/off-topic-questions.md). The
cross-encoder was trained on questions and separates the two, except for questions that use a library's words for
other matters, which have lower cosines.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...documents import Category, Chunk
from ...documents.chunking import Window
from ...models.concurrency import gather_all
from ...models.embeddings.bundled_models import EMBEDDER, Reranker
from ...models.embeddings.protocol import EmbeddingModel, Vector, Vectors
from ...text.words import is_latin, is_stop, split_words, stem
from ..protocols import Need, PassageFinding, Purpose, Source
from .quotable_sentences import Genre, QuotablePassage, genre_of, quotable_passages

_COMPARED: Final = 4  # sentences per chunk: those that share most words with the need
_LENGTH: Final = 8  # words added to a sentence's length, so that short ones do not win by being short
_UNJUDGED: Final = 0.5  # score of a passage that no local model can judge; only its search rank is known
_BESIDE: Final = 3.0  # log-odds that the second sentence of a chunk may be below the first to be listed too
# Weights of cosine to the need, cosine to the subject, log-odds of the cross-encoder and words shared with the need,
# the cosines centred on their point of even odds; and what the genre of a sentence adds.
_NEED: Final = (25.0, 0.70)
_SUBJECT: Final = (10.0, 0.68)
_CROSS: Final = 0.25
_SHARED: Final = 0.5
_MOST_SHARED: Final = 4
_OF_GENRE: Final[Mapping[Genre, float]] = {"outcome": 0.5, "other": 0.0, "procedure": -3.0, "announcement": -9.0}
_EVEN: Final = 0.0
_SPREAD: Final = 2.0


class Nearness:
    """Says how near sentences are to what an author states, in log-odds.

    A cross-encoder was trained on questions, so it is combined with two cosines, to the statement and to the subject
    of the experiment, and with the words that are shared: a word with two meanings must not match across fields. What
    a sentence reports weighs more than what its authors did, unless the statement is on methods; what they announce or
    define is no evidence.
    """

    def __init__(self, vectors: SentenceVectors, relevance: Relevance) -> None:
        self._vectors = vectors
        self._relevance = relevance

    async def of_words(
        self, need: Need, subject: str, texts: Sequence[str], category: Category
    ) -> tuple[NDArray[np.float64], list[str]]:
        """The nearness by words and genre alone, [n], and the nearest queries; `category` is that of the section."""
        rows = await self._vectors.of(texts)
        near = rows @ np.array([await self._vectors.of_query(query) for query in need.queries]).T
        about = rows @ await self._vectors.of_query(subject)
        odds = _NEED[0] * (near.max(axis=1) - _NEED[1]) + _SUBJECT[0] * (about - _SUBJECT[1])
        queries = [need.queries[place] for place in near.argmax(axis=1)]
        said = [_said(need, query, text, category) for query, text in zip(queries, texts, strict=True)]
        return odds.astype(np.float64) + np.array(said), queries

    async def of_sources(self, need: Need, subject: str, sources: Sequence[Source]) -> list[float]:
        """The nearness of quoted sentences, read by the cross-encoder with the titles of their papers, [n]."""
        found: list[float] = []
        for source in sources:
            (words,), (query,) = await self.of_words(need, subject, [source.evidence.quote], source.category)
            said = f"{source.paper.title}. {' '.join(source.evidence.quote.split())}"
            found.append(float(words + _CROSS * (await self._relevance.cross_odds(query, [said]))[0]))
        return found

    async def of_answers(self, question: str, sources: Sequence[Source]) -> list[float]:
        """How near quoted sentences are to a question, [n]."""
        quotes = [source.evidence.quote for source in sources]
        if not quotes or not self._relevance.can_judge(question):
            return [source.evidence.llm_score for source in sources]
        cosines = await self._vectors.of(quotes) @ await self._vectors.of_query(question)
        return [float(odds) for odds in await self._relevance.odds(question, quotes, cosines)]


def _said(need: Need, query: str, text: str, category: Category) -> float:
    """What the words that a sentence shares with a query and its genre add to its nearness."""
    line = " ".join(text.split())
    genre = genre_of(line)
    if category is Category.METHOD and genre != "announcement" and any(map(str.isdigit, line)):
        genre = "procedure"  # numbers in a section on methods are settings, not results
    shared = min(_MOST_SHARED, len(_stems(query) & _stems(line)))
    return _SHARED * shared + (0.0 if genre == "procedure" and need.asks == "method" else _OF_GENRE[genre])


class StatementReader:
    """Implements `EvidenceReader` for sections: the sentence of each chunk that is nearest to each need by words."""

    def __init__(self, nearness: Nearness) -> None:
        self._nearness = nearness

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
        passages = rank_by_words(need.queries, chunk)
        if not passages:
            return None
        odds, _ = await self._nearness.of_words(
            need, purpose.text, [passage.text for passage in passages], chunk.category
        )
        best = int(odds.argmax())
        return _finding(window, chunk, passages[best], as_score(float(odds[best]), _EVEN, _SPREAD), need)


class QuestionReader:
    """Implements `EvidenceReader` for questions: judges a whole passage, then picks its sentence nearest to the need.

    A passage is scored by the clause of the question that it fits best.
    """

    def __init__(self, vectors: SentenceVectors, relevance: Relevance) -> None:
        self._vectors = vectors
        self._relevance = relevance

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        """One or two findings for each chunk with quotable sentences, best first."""
        found = await gather_all(self._findings(purpose, window, name) for window in windows for name in window.hits)
        return sorted((item for items in found for item in items), key=lambda item: -item.score)

    async def _findings(self, purpose: Purpose, window: Window, name: str) -> list[PassageFinding]:
        chunk = next(chunk for chunk in window.chunks if chunk.id == name)
        needs = purpose.named(window.needs) or purpose.needs[:1]
        judged = self._relevance.can_judge(purpose.text)
        if not judged and not self._relevance.multilingual:
            return []
        cosine = np.array([window.cosine_of(name)])
        odds = [
            float((await self._relevance.odds(need.text, [chunk.text], cosine))[0]) if judged else 0.0 for need in needs
        ]
        need = needs[int(np.argmax(odds))]
        passages = rank_by_words(need.queries, chunk)
        if not passages:
            return []
        texts = [passage.text for passage in passages]
        cosines = await self._vectors.of(texts) @ await self._vectors.of_query(need.text)
        said = await self._relevance.odds(need.text, texts, cosines) if judged else cosines
        score = as_score(max(odds)) if judged else _UNJUDGED
        best, *others = np.argsort(-said)
        beside = [place for place in others[:1] if judged and said[place] >= max(EVEN, said[best] - _BESIDE)]
        return [_finding(window, chunk, passages[place], score, need) for place in (best, *beside)]


def rank_by_words(queries: Sequence[str], chunk: Chunk) -> list[QuotablePassage]:
    """The quotable sentences of a chunk that share the most words with the queries."""
    asked = _stems(" ".join(queries))
    return sorted(
        quotable_passages(chunk.text),
        key=lambda passage: -len(_stems(passage.text) & asked) / (len(passage.text.split()) + _LENGTH) ** 0.5,
    )[:_COMPARED]


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word.surface) for word in split_words(text) if not is_stop(word))


def _finding(window: Window, chunk: Chunk, passage: QuotablePassage, score: float, need: Need) -> PassageFinding:
    spans = ((chunk, passage.start, passage.end),)
    words = " ".join(passage.text.split())
    return PassageFinding(window.paper, words, score, need.id, spans, window.cosine_of(chunk.id))


# Weights of the cross-encoder's log-odds and of the bundled embedding's cosine, around the point where both are even.
_COSINE_WEIGHT: Final = 30.0
_COSINE_EVEN: Final = 0.70
# The log-odds at which a passage is as likely as not near to (a part of) a question, and the slope there.
EVEN: Final = -5.0
_QUESTION_SPREAD: Final = 5.0
_SURE: Final = 1e-6
_KEPT_SCORES: Final = 20_000


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
        """Log-odds that each text is relevant to the question, [n], given the `cosines` of the texts, [n]."""
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
        while len(self._scores) > _KEPT_SCORES:
            self._scores.popitem(last=False)
        return found


def as_score(odds: float, even: float = EVEN, spread: float = _QUESTION_SPREAD) -> float:
    """Log-odds as the score of a reading, 0-1: 0.5 at even odds."""
    return float(1 / (1 + np.exp(-(odds - even) / spread)))


_KEPT_VECTORS = 20_000


class SentenceVectors:
    """Caches the latest vectors of an embedding model; shared by the extractive roles of a run."""

    def __init__(self, embedding: EmbeddingModel) -> None:
        self._embedding = embedding
        self._documents: OrderedDict[str, Vector] = OrderedDict()
        self._queries: OrderedDict[str, Vector] = OrderedDict()

    async def of(self, texts: Sequence[str]) -> Vectors:
        """Vectors of `texts` as documents, [n, d]."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._documents]
        found = dict(zip(missing, await self._embedding.embed_documents(missing), strict=True)) if missing else {}
        rows = [found[text] if text in found else self._documents[text] for text in texts]
        self._documents.update(found)
        while len(self._documents) > _KEPT_VECTORS:
            self._documents.popitem(last=False)
        return np.array(rows, dtype=np.float32)

    async def of_query(self, text: str) -> Vector:
        """The vector of `text` as a query, [d]."""
        if text not in self._queries:
            self._queries[text] = await self._embedding.embed_query(text)
        return self._queries[text]
