"""Scores sentences and passages for needs with the two bundled models, in log-odds.

The cosine alone does not tell whether a passage is relevant to a question: with the bundled embedding, questions about
another field come as close to a library as half of those that it answers (docs/decisions/off-topic-questions.md). The
cross-encoder was trained on questions and separates the two, except for questions that use a library's words for
other matters, which have lower cosines.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...documents import Category
from ...models.concurrency import gather_all
from ...models.embeddings.bundled_models import EMBEDDER, Reranker
from ...models.embeddings.protocol import EmbeddingModel, Vector
from ...text.words import is_latin, is_stop, one_line, split_words, stem
from ..protocols import Need, Source
from .quotable_sentences import Genre, genre_of

Odds = NDArray[np.float64]
_MOST_CACHED: Final = 20_000  # vectors, and scores of the cross-encoder
_SURE: Final = 1e-6
_LONGEST_NOUN: Final = 60  # characters, with two words before it
_LENGTH: Final = 8  # words added to a sentence's length, so that short ones do not win by being short
# Weight of a cosine beside the log-odds of the cross-encoder, and the cosine at even odds.
_PASSAGE: Final = (30.0, 0.70)
_SENTENCE: Final = (10.0, 0.70)
# A sentence answers a question better if its whole passage does, if it concludes, and if it has a number asked for.
_OF_PASSAGE: Final = 0.5
_CONCLUDES: Final = 1.5
_COUNTS: Final = 3.0  # and as much for each thing asked for that it names behind a number
_ASKED: Final = re.compile(
    r"\b(?:how (?:many|few)|(?P<share>how much|(?:what|which) (?:fraction|proportion|percentage|percent|share|part)s?)"
    r"(?: of(?: the| all)?)?)\s(?P<noun>\w{1,40})",
    re.IGNORECASE,
)
_COUNT: Final = re.compile(
    r"(?<![\d.])(?:\d{1,9}(?![\d.]|,\d)|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|fifty|"
    r"hundreds?|thousands?|dozens?)\b)(?!-|\s?(?:%|times\b|per\s?cent|fold\b))",
    re.IGNORECASE,
)
_SHARE: Final = re.compile(
    r"\d\s?(?:%|percent|per cent|times|-?fold)|(?<![\d.])0?\.\d|\b(?:half|thirds?|quarters?|majority|most|twice)\b",
    re.IGNORECASE,
)
# Weights of the cosine to a statement, the cosine to the subject, the log-odds of the cross-encoder and the words
# shared with the statement, each with its value at even odds; and what the genre of a sentence adds.
_NEED: Final = (25.0, 0.70)
_SUBJECT: Final = (10.0, 0.68)
_CROSS: Final = (0.5, -4.0)
CITED: Final = 8.0  # added for a passage of a paper that the statement names
_PAPER: Final = 3.0  # of the cosine of a paper's title and abstract to the subject, around the mean of the papers
_RARITY: Final = (0.3, 8.0)  # sum over the shared words, each by the logarithm of how rare it is among the passages
_SHARED: Final = 0.5  # for each shared word where nothing is known of its rarity,
_MOST_SHARED: Final = 4  # up to this number of words
_OF_GENRE: Final[Mapping[Genre, float]] = {"outcome": 0.5, "other": 0.0, "procedure": -3.0, "announcement": -9.0}


class PassageScores:
    """Scores texts for questions and statements; caches what the models computed, shared by the roles of a run."""

    def __init__(self, embedding: EmbeddingModel, reranker: Reranker) -> None:
        self._embedding = embedding
        self._reranker = reranker
        self._bundled = embedding.name.endswith(EMBEDDER.name)
        self._vectors: dict[str, Vector] = {}
        self._crossed: dict[tuple[str, str], float] = {}

    def can_judge(self, question: str) -> bool:
        """True when the models know the question's script; the bundled ones read English only."""
        return is_latin(question)

    @property
    def multilingual(self) -> bool:
        """True when the embedding may know languages other than English."""
        return not self._bundled

    async def cosines(self, queries: Sequence[str], texts: Sequence[str]) -> Odds:
        """The cosine of each text to each query, [texts, queries]."""
        if not texts:
            return np.zeros((0, len(queries)))
        if len(self._vectors) > _MOST_CACHED:
            self._vectors = {}
        vectors = self._vectors
        if missing := [text for text in dict.fromkeys(texts) if text not in vectors]:
            vectors.update(zip(missing, await self._embedding.embed_documents(missing), strict=True))
        asked = [await self._embedding.embed_query(query) for query in queries]
        rows = np.array([vectors[text] for text in texts], dtype=np.float64)
        found: Odds = rows @ np.array(asked, dtype=np.float64).T
        return found

    async def crossed(self, query: str, texts: Sequence[str]) -> Odds:
        """Log-odds by the cross-encoder alone that each text answers the query, [n]; a text takes up to 50 ms."""
        if len(self._crossed) > _MOST_CACHED:
            self._crossed = {}
        known = self._crossed
        if missing := [text for text in dict.fromkeys(texts) if (query, text) not in known]:
            raw = await asyncio.to_thread(self._reranker.score, query, missing)
            sure = np.clip(raw.astype(np.float64), _SURE, 1 - _SURE)
            known.update(zip([(query, text) for text in missing], np.log(sure / (1 - sure)).tolist(), strict=True))
        return np.array([known[query, text] for text in texts], dtype=np.float64)

    async def passages(self, question: str, texts: Sequence[str], cosines: Sequence[float]) -> Odds:
        """Log-odds that each passage is relevant to the question, [n], given its cosine."""
        return self._beside(await self.crossed(question, texts), np.array(cosines), _PASSAGE)

    async def sentences(self, question: str, texts: Sequence[str]) -> Odds:
        """Log-odds that each sentence answers the question, [n], without its passage."""
        crossed = await self.crossed(question, texts)
        odds = self._beside(crossed, (await self.cosines([question], texts))[:, 0], _SENTENCE)
        if asked := list(_ASKED.finditer(question)):
            odds += [_COUNTS * _count(text, asked) for text in texts]
        return odds

    def _beside(self, odds: Odds, cosines: Odds, weight: tuple[float, float]) -> Odds:
        return odds + weight[0] * (cosines - weight[1]) if self._bundled else odds

    async def statements(self, need: Need, subject: str, texts: Sequence[str], category: Category) -> Odds:
        """How near sentences are to what an author states, by words and genre alone, [n].

        Two cosines, to the statement and to the `subject` of the experiment, are combined with the words that are
        shared: a word with two meanings must not match across fields. `category` is that of the sentences' section.
        """
        near, odds = await self._by_cosines(need, subject, texts)
        shared = [len(_stems(query) & _stems(text)) for query, text in zip(near, texts, strict=True)]
        return odds + _SHARED * np.minimum(_MOST_SHARED, shared) + [_of_genre(need, text, category) for text in texts]

    async def near_statements(self, needs: Sequence[tuple[Need, Sequence[Source]]], subject: str) -> list[Odds]:
        """How near the quotes of sources are to each need, read by the cross-encoder with the titles of their papers.

        Words count by how rare they are among the passages of all sources.
        """
        passages = {source.text: _stems(source.text) for _, sources in needs for source in sources}
        among = Counter(word for words in passages.values() for word in words)
        papers = {source.paper.key: source.paper for _, sources in needs for source in sources}
        abouts = [f"{paper.title}. {paper.abstract or ''}" for paper in papers.values()]
        cosines = (await self.cosines([subject], abouts))[:, 0]
        of_paper = dict(zip(papers, cosines - cosines.mean(), strict=True)) if papers else {}

        def rarity(words: frozenset[str]) -> float:
            return sum(math.log((len(passages) + 1) / (among[word] + 0.5)) for word in words)

        async def of_need(need: Need, sources: Sequence[Source]) -> Odds:
            near, odds = await self._by_cosines(need, subject, [source.evidence.quote for source in sources])
            asked = _stems(" ".join(need.queries))
            for place, (source, query) in enumerate(zip(sources, near, strict=True)):
                quote = one_line(source.evidence.quote)
                crossed = (await self.crossed(query, [f"{source.paper.title}. {quote}"]))[0]
                odds[place] += _CROSS[0] * (crossed - _CROSS[1]) + _of_genre(need, quote, source.category)
                odds[place] += _RARITY[0] * (rarity(asked & _stems(quote)) - _RARITY[1])
                odds[place] += _PAPER * of_paper[source.paper.key]
            return odds

        return await gather_all(of_need(need, sources) for need, sources in needs)

    async def _by_cosines(self, need: Need, subject: str, texts: Sequence[str]) -> tuple[list[str], Odds]:
        """The query of the need nearest to each text, and the log-odds by the cosines to it and to the subject, [n]."""
        cosines = await self.cosines([*need.queries, subject], texts)
        near = cosines[:, :-1]
        odds = _NEED[0] * (near.max(axis=1) - _NEED[1]) + _SUBJECT[0] * (cosines[:, -1] - _SUBJECT[1])
        return [need.queries[place] for place in near.argmax(axis=1)], odds

    async def answers(self, question: str, sources: Sequence[Source]) -> list[float]:
        """How near the quotes of sources are to a question, by their words and their passages, [n]."""
        if not sources or not self.can_judge(question):
            return [source.evidence.llm_score for source in sources]
        odds = await self.sentences(question, [source.evidence.quote for source in sources])
        odds += _OF_PASSAGE * await self.crossed(question, [source.text for source in sources])
        concludes = (Category.CONCLUSION, Category.ABSTRACT)
        return [each + _CONCLUDES * (source.category in concludes) for each, source in zip(odds, sources, strict=True)]


def _count(text: str, asked: Sequence[re.Match[str]]) -> int:
    """1 if a text has such a number as is asked for, and 1 more for each noun asked for that stands behind one."""
    numbers = [found.end() for found in (_SHARE if asked[0]["share"] else _COUNT).finditer(text)]
    after = {stem(word.strip(",;:.")) for end in numbers for word in text[end : end + _LONGEST_NOUN].split()[:3]}
    return bool(numbers) + sum(stem(match["noun"]) in after for match in asked)


def _of_genre(need: Need, text: str, category: Category) -> float:
    """What the genre of a sentence adds to its nearness.

    What a sentence reports weighs more than what its authors did, unless the statement is on methods; what they
    announce or define is no evidence.
    """
    line = one_line(text)
    genre = genre_of(line)
    if category is Category.METHOD and genre != "announcement" and any(map(str.isdigit, line)):
        genre = "procedure"  # numbers in a section on methods are settings, not results
    return 0.0 if genre == "procedure" and need.asks == "method" else _OF_GENRE[genre]


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word.surface) for word in split_words(text) if not is_stop(word))


def rank_by_words(queries: Sequence[str], texts: Sequence[str]) -> list[int]:
    """The places of the texts by how many words they share with the queries for their length, best first."""
    asked = _stems(" ".join(queries))
    shares = [len(_stems(text) & asked) / (len(text.split()) + _LENGTH) ** 0.5 for text in texts]
    return sorted(range(len(texts)), key=lambda place: -shares[place])


# The log-odds at which a passage is as likely as not near to (a part of) a question, and the slope there.
EVEN: Final = -5.0
_QUESTION_SPREAD: Final = 5.0


def as_score(odds: float, even: float = EVEN, spread: float = _QUESTION_SPREAD) -> float:
    """Log-odds as the score of a reading, 0-1: 0.5 at even odds."""
    return float(1 / (1 + np.exp(-(odds - even) / spread)))
