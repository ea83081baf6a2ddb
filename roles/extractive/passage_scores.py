"""Selects quotable sentences, and scores sentences and passages for needs with the two bundled models, in log-odds.

The cosine alone does not tell whether a passage is relevant to a question: with the bundled embedding, questions about
another field come as close to a library as half of those that it answers (docs/decisions/off-topic-questions.md). The
cross-encoder separates the two, except for questions that use a library's words in another sense, which have lower
cosines.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ...documents import Category, Paper
from ...models.embeddings.bundled_models import EMBEDDER, Reranker, load_tokenizer
from ...models.embeddings.protocol import EmbeddingModel, Vector
from ...text.sentences import sentence_spans
from ...text.words import is_latin, is_stop, one_line, read_rules, split_words, stem
from ..protocols import Need, Source

# The rules were derived from bad quotes from real papers: pointers to figures, plans, sentences that depend on the
# previous one, half a citation, a line of a table. Sentences are quoted whole, without their closing citation.
MIN_WORDS = 8
MAX_WORDS = 45
_FEWEST_LETTERS = 0.65  # minimum share of words made of letters
_LONGEST_CITATION = 300  # characters, at the end of a sentence

_QUOTABLE: Final = {name: re.compile(rule) for name, rule in read_rules(__file__, "quotable_rules")["patterns"].items()}
_WORD = re.compile(r"[^\W\d_][\w'’-]*")

Genre = Literal["announcement", "detail", "procedure", "other"]


def genre_of(sentence: str) -> Genre:
    """Classify a sentence: it announces or defines something, gives a detail, says what was done, or does otherwise."""
    if _QUOTABLE["announces"].search(sentence):
        return "announcement"
    if _QUOTABLE["detail"].search(sentence):
        return "detail"
    done = _QUOTABLE["aimed"].search(sentence) or (
        _QUOTABLE["procedure"].search(sentence) and not _QUOTABLE["report"].search(sentence)
    )
    return "procedure" if done else "other"


@dataclass(frozen=True, slots=True)
class QuotablePassage:
    """A quotable sentence of a chunk without its closing citation; `chunk.text[start:end] == text`."""

    text: str
    start: int
    end: int


def quotable_passages(chunk_text: str) -> list[QuotablePassage]:
    """Return the quotable sentences of a chunk, in order."""
    passages = []
    for start, end in sentence_spans(chunk_text):
        body = chunk_text[start:end].rstrip()
        if body.startswith("**") and body.endswith("**"):  # a statement in bold
            body = body[2:-2]
            start += 2
        # bounded: 300 characters
        trailing = _QUOTABLE["trailing_citations"].search(body, max(0, len(body) - _LONGEST_CITATION))
        if trailing:
            body = body[: trailing.start()]
        elif body.endswith("."):
            body = body[:-1]
        else:
            continue
        body = body.rstrip(" .")
        if "\n\n" not in body and is_quotable(" ".join(body.split())):
            passages.append(QuotablePassage(body, start, start + len(body)))
    return passages


def is_quotable(sentence: str) -> bool:
    """Whether a sentence (on one line, without its full stop) can be understood without its neighbours.

    Authors may say what they did and found, and give values.
    """
    plain = _without_values(sentence)
    words = plain.split()
    if not MIN_WORDS <= len(words) <= MAX_WORDS or not plain[0].isupper():
        return False
    if (
        any(rule.match(plain) for rule in (_QUOTABLE["leaning"], _QUOTABLE["caption"]))
        or _QUOTABLE["unfit"].search(plain)
        or _QUOTABLE["plan"].search(plain)
    ):
        return False
    if plain.count("(") != plain.count(")") or plain.count("*") % 2 or plain.count("_") % 2:
        return False
    letters = _WORD.findall(plain)
    return len(letters) >= _FEWEST_LETTERS * len(words) and bool(_QUOTABLE["verb"].search(" ".join(words[1:])))


def _without_values(sentence: str) -> str:
    """Remove elements that do not make a sentence unquotable: values, quotation marks, "(Figure 2)" and the like."""
    plain = _QUOTABLE["the_same"].sub(
        "the", _QUOTABLE["quoted"].sub(r"\1", _QUOTABLE["value"].sub(" ", _QUOTABLE["pointers"].sub("", sentence)))
    )
    plain = " ".join(
        (_QUOTABLE["exists"].sub("", plain, count=1) if _QUOTABLE["exists"].match(plain) else plain).split()
    )
    return plain[:1].upper() + plain[1:] if sentence[:1].isupper() else plain


Odds = NDArray[np.float64]
_MOST_CACHED: Final = 20_000  # vectors, and scores of the cross-encoder
_SURE: Final = 1e-6
_LONGEST_NOUN: Final = 60  # characters, with two words before it
_LENGTH: Final = 8  # words added to a sentence's length, so that short ones do not win by being short
# Weight of the cosine added to the log-odds of the cross-encoder, and the cosine at which nothing is added.
_PASSAGE: Final = (30.0, 0.70)
_SENTENCE: Final = (10.0, 0.70)
# Added for a sentence: this share of its passage's log-odds, and bonuses for a conclusion and for a requested number.
_OF_PASSAGE: Final = 0.5
_CONCLUDES: Final = 1.5
_COUNTS: Final = 3.0  # also added for each requested noun after a number
_RULES: Final = read_rules(__file__, "passage_rules")["patterns"]
_ASKED, _COUNT, _SHARE = (re.compile(_RULES[name], re.IGNORECASE) for name in ("asked", "count", "share"))
# Log-odds that a sentence could be cited for a statement, fitted to judged pairs (decisions/extractive-passages.md):
# weights of its cosine to the statement's nearest sentence, of the words shared with the statement, of the share of its
# words that the experiment also uses, and of the cross-encoder's log-odds.
_AT_ZERO: Final = -7.75
_COSINE: Final = 6.5
_SHARED: Final = 0.13
_TOPICAL: Final = 5.6
_MORE_WEIGHT: Final = 8.0  # added to a sentence's weight, so that short sentences do not win by being short
_CROSS: Final = (0.1, -5.0)  # weight, and the log-odds at which nothing is added
_HOPELESS: Final = -2.5  # log-odds up to which a sentence is not read by the cross-encoder
_LEAST, _RAREST = 0.3, 5.5  # weights of words
# For the subject: minimum log-odds with which a sentence supports its paper, the weight of the cosine of the paper's
# abstract, and the weight and number of the nearest needs whose mean log-odds rank a paper's sentences.
_SUPPORTS: Final = -1.0
_ABSTRACT: Final = 6.0
_AMONG, _NEEDS = 0.5, 3
# Log-odds added for nearness to an experiment, of a sentence with its paper's title and of the title alone: weight, and
# the cosine at which nothing is added.
_UNDER_TITLE: Final = (8.0, 0.72)
_TITLE: Final = (8.0, 0.68)
CITED: Final = 8.0  # log-odds added for a passage of a paper that the statement names
_OF_GENRE: Final[Mapping[Genre, float]] = {"other": 0.0, "procedure": -0.6, "detail": 0.0, "announcement": -4.0}


class PassageScores:
    """Scores texts for questions and statements; caches model results, shared by the roles of a run."""

    def __init__(self, embedding: EmbeddingModel, reranker: Reranker) -> None:
        self._embedding = embedding
        self._reranker = reranker
        self.multilingual = not embedding.name.endswith(EMBEDDER.name)  # the embedding may know more than English
        self._vectors: dict[str, Vector] = {}
        self._crossed: dict[tuple[str, str], float] = {}

    async def cosines(self, queries: Sequence[str], texts: Sequence[str]) -> Odds:
        """Return the cosine of each text to each query, [texts, queries]."""
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

    async def cross_encode(self, query: str, texts: Sequence[str]) -> Odds:
        """Return the cross-encoder's log-odds that each text answers the query, [n]; takes up to 50 ms per text."""
        if len(self._crossed) > _MOST_CACHED:
            self._crossed = {}
        known = self._crossed
        if missing := [text for text in dict.fromkeys(texts) if (query, text) not in known]:
            raw = await asyncio.to_thread(self._reranker.score, query, missing)
            sure = np.clip(raw.astype(np.float64), _SURE, 1 - _SURE)
            known.update(zip([(query, text) for text in missing], np.log(sure / (1 - sure)).tolist(), strict=True))
        return np.array([known[query, text] for text in texts], dtype=np.float64)

    async def passages(self, question: str, texts: Sequence[str], cosines: Sequence[float]) -> Odds:
        """Return the log-odds that each passage is relevant to the question, [n], given its cosine."""
        return self._beside(await self.cross_encode(question, texts), np.array(cosines), _PASSAGE)

    async def sentences(self, question: str, texts: Sequence[str]) -> Odds:
        """Return the log-odds that each sentence answers the question, [n], regardless of its passage."""
        crossed = await self.cross_encode(question, texts)
        odds = self._beside(crossed, (await self.cosines([question], texts))[:, 0], _SENTENCE)
        if asked := list(_ASKED.finditer(question)):
            odds += [_COUNTS * _count(text, asked) for text in texts]
        return odds

    def _beside(self, odds: Odds, cosines: Odds, weight: tuple[float, float]) -> Odds:
        return odds if self.multilingual else odds + weight[0] * (cosines - weight[1])

    async def statements(
        self, need: Need, topic: Set[str], passages: Sequence[tuple[str, Category]], *, crossed: bool = False
    ) -> Odds:
        """Return how near sentences, each with its section's category, are to an author's statement, in log-odds, [n].

        `topic` has the stems of the experiment's words (`topic_of`), which tell apart meanings of a word. With
        `crossed`, sentences that may be near are also scored by the cross-encoder, with the nearest query.
        """
        texts = [one_line(text) for text, _ in passages]
        cosines = await self.cosines(need.queries, texts)
        stated = _weights(need.text).keys()
        weights = [_weights(text) for text in texts]
        shared = np.array([_sum(of, stated) for of in weights])
        topical = np.array([_sum(of, topic) / (_sum(of, of.keys()) + _MORE_WEIGHT) for of in weights])
        genres = [_of_genre(need, text, category) for text, (_, category) in zip(texts, passages, strict=True)]
        odds: Odds = (
            _AT_ZERO + _COSINE * cosines.max(axis=1, initial=0) + _SHARED * shared + _TOPICAL * topical + genres
        )
        for place in np.flatnonzero(odds > _HOPELESS) if crossed else ():
            (read,) = await self.cross_encode(need.queries[cosines[place].argmax()], [texts[place]])
            odds[place] += _CROSS[0] * (read - _CROSS[1])
        return odds

    async def of_subject(self, about: str, sources: Sequence[Source]) -> Odds:
        """Return log-odds to add to those of sentences, by the subjects of their papers, [n].

        Papers on other subjects may share techniques and words with an experiment.
        """
        if self.multilingual:  # cosines of other embeddings have another scale
            return np.zeros(len(sources))
        titles = [source.paper.title for source in sources]
        under = [f"{title}. {one_line(source.evidence.quote)}" for title, source in zip(titles, sources, strict=True)]
        near = [(await self.cosines([about], texts))[:, 0] for texts in (under, titles)]
        odds: Odds = sum(
            (weight * (each - even) for each, (weight, even) in zip(near, (_UNDER_TITLE, _TITLE), strict=True)),
            np.zeros(len(sources)),
        )
        return odds * [len(title.split()) > 1 for title in titles]  # a single word does not tell the subject

    async def subject(self, about: str, papers: Sequence[Paper], of_needs: Sequence[Odds]) -> Odds:
        """Return how near sentences of papers are to the subject of an experiment, in log-odds, [n].

        A paper is nearer the more of its sentences are near a need, and the nearer its abstract; among its sentences,
        those near several needs come first.
        """
        if not papers:
            return np.zeros(0)
        sorted_odds = np.sort(np.array(of_needs), axis=0)
        support: Counter[str] = Counter()
        for paper, best in zip(papers, sorted_odds[-1], strict=True):
            support[paper.key] += max(0.0, best - _SUPPORTS)
        abouts = await self.cosines([about], [f"{paper.title}. {paper.abstract or ''}" for paper in papers])
        of_paper = np.log1p([support[paper.key] for paper in papers]) + _ABSTRACT * abouts[:, 0]
        odds: Odds = of_paper + _AMONG * sorted_odds[-_NEEDS:].mean(axis=0)
        return odds

    async def answers(self, question: str, sources: Sequence[Source]) -> list[float]:
        """Return how near the quotes of sources are to a question, by their words and their passages, [n]."""
        if not sources or not is_latin(question):
            return [source.evidence.llm_score for source in sources]
        odds = await self.sentences(question, [source.evidence.quote for source in sources])
        odds += _OF_PASSAGE * await self.cross_encode(question, [source.text for source in sources])
        concludes = (Category.CONCLUSION, Category.ABSTRACT)
        return [each + _CONCLUDES * (source.category in concludes) for each, source in zip(odds, sources, strict=True)]


def _count(text: str, asked: Sequence[re.Match[str]]) -> int:
    """Return 1 if a text has a number of the requested kind, plus 1 for each requested noun after a number."""
    numbers = [found.end() for found in (_SHARE if asked[0]["share"] else _COUNT).finditer(text)]
    after = {stem(word.strip(",;:.")) for end in numbers for word in text[end : end + _LONGEST_NOUN].split()[:3]}
    return bool(numbers) + sum(stem(match["noun"]) in after for match in asked)


def _of_genre(need: Need, text: str, category: Category) -> float:
    """Return log-odds by genre: announcements and definitions are not evidence, and procedures less than reports.

    Numbers in a methods section are settings, not results.
    """
    genre = genre_of(text)
    if category is Category.METHOD and genre in ("detail", "other") and any(map(str.isdigit, text)):
        genre = "procedure"
    return 0.0 if genre == "procedure" and need.asks == "method" else _OF_GENRE[genre]


def topic_of(needs: Iterable[Need]) -> Set[str]:
    """Return the stems of the words in a section's statements and its paper's subject."""
    return _weights(" ".join(text for need in needs for text in (need.text, *need.queries))).keys()


@lru_cache(maxsize=_MOST_CACHED)
def _weights(text: str) -> Mapping[str, float]:
    return {stem(word.surface): _rarity(word.surface.lower()) for word in split_words(text) if not is_stop(word)}


@lru_cache(maxsize=_MOST_CACHED)
def _rarity(word: str) -> float:
    """Return how rare a word is, as a logarithm, from its rank in the tokenizer's vocabulary (most frequent first)."""
    ids = load_tokenizer(EMBEDDER).encode(word, add_special_tokens=False).ids
    return _RAREST if len(ids) != 1 else min(_RAREST, max(_LEAST, 0.8 + 1.6 * math.log(max(ids[0], 1) / 2000)))


def _sum(weights: Mapping[str, float], words: Set[str]) -> float:
    return sum(weight for word, weight in weights.items() if word in words)


def rank_by_words(queries: Sequence[str], texts: Sequence[str]) -> list[int]:
    """Rank the texts by the words shared with the queries, relative to length; returns indices, best first."""
    asked = _weights(" ".join(queries)).keys()
    shares = [len(_weights(text).keys() & asked) / (len(text.split()) + _LENGTH) ** 0.5 for text in texts]
    return sorted(range(len(texts)), key=lambda place: -shares[place])


# The log-odds at which a passage is as likely as not near (a part of) a question, and the slope there.
EVEN: Final = -5.0
_QUESTION_SPREAD: Final = 5.0


def as_score(odds: float, even: float = EVEN, spread: float = _QUESTION_SPREAD) -> float:
    """Convert log-odds to the score of a reading, 0-1: 0.5 at even odds."""
    return float(1 / (1 + np.exp(-(odds - even) / spread)))
