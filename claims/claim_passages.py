"""Finds the passages of papers that bear on a claim, and chooses their sentences to show to a judge."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from typing import Final

from ..citations.cited_works import find_marks
from ..documents import Category, Chunk, Evidence, Paper
from ..documents.passages import readable_units
from ..documents.plain_text import plain_text
from ..roles.chat.prompt_format import estimate_tokens
from ..roles.protocols import PassageSentence, Source
from ..stores.library import Library, UnknownPaperError
from ..stores.text_analysis import analyze
from ..text.sentences import is_context_dependent
from ..text.words import is_generic, is_stop, split_words
from ..tools.retrieval import Retrieval, retrieve
from ..tools.scope import Scope
from .claim_records import Does, GivenPassage, PassageRecord

CLAIM_TOKENS: Final = 1_500  # of all passages of one claim
# The share of a claim's words that being in the passage nearest by search is worth; half of it in the second one.
_RANK_WEIGHT: Final = 0.2
_GIVEN_CHARACTERS: Final = 1_500  # of one part of a given text
_ELSEWHERE_HITS: Final = 24
_ELSEWHERE_PAPERS: Final = 3
_NEAR_PAPERS: Final = 8
_WORD_HITS: Final = 8
_MOST_CITED: Final = 3  # works named after a sentence that cites others
_FEWEST: Final = 3  # minimum words of a claim that is compared with sentences
_LONGEST: Final = 2_000  # characters
# Minimum shares of a claim's words for a sentence to be about the same thing, and to say nearly the same thing.
SAME_MATTER: Final = 0.6
SAME_WORDS: Final = 0.8
_SAME_BACK: Final = 0.55  # of the sentence's words, those that the claim has
_LEAST_COPIED: Final = 7  # words
SHOWN_WORDS: Final = 160  # characters of a sentence in a message


@dataclass(frozen=True, slots=True)
class NearSentence:
    """The sentence at `start:end` of a passage with most of a claim's words, alone and with its neighbours (`around`).

    `share` (0-1) is the share of the claim's words found in the sentence, `back` the share of its words in the claim.
    """

    chunk: Chunk
    start: int
    end: int
    text: str
    around: str
    share: float
    back: float
    words: int

    @property
    def is_copied(self) -> bool:
        """Whether a claim repeats nearly all of its words."""
        return self.share >= SAME_WORDS and self.back >= _SAME_BACK and self.words >= _LEAST_COPIED


@lru_cache(maxsize=8192)
def content_words(text: str) -> frozenset[str]:
    """The words of a text that carry its content, in their basic forms."""
    return frozenset(word.form for word in split_words(text[:_LONGEST]) if not is_stop(word))


class SentenceIndex:
    """The sentences of some passages by their words; a comparison visits only the occurrences of a claim's words."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.text = "\n\n".join(chunk.text for chunk in chunks)
        self._sentences = [
            (chunk, units, number)
            for chunk in chunks
            for units in [readable_units(chunk.text)]
            for number in range(len(units))
        ]
        self._words = [content_words(units[number].text) for _, units, number in self._sentences]
        self._places: dict[str, list[int]] = {}
        for place, words in enumerate(self._words):
            for word in words:
                self._places.setdefault(word, []).append(place)

    def nearest(self, claim: str) -> NearSentence | None:
        """The sentence that shares most words with a claim; None for a claim of a few words, or if none shares any."""
        wanted = content_words(claim)
        common = Counter(place for word in wanted for place in self._places.get(word, ()))
        if len(wanted) < _FEWEST or not common:
            return None
        count, place = max(
            common.items(), key=lambda item: (item[1] + len(wanted) / 4 * item[1] / len(self._words[item[0]]), -item[0])
        )[::-1]
        chunk, units, number = self._sentences[place]
        around = " ".join(unit.text for unit in units[max(0, number - 1) : number + 2])
        words = len(self._words[place])
        unit = units[number]
        return NearSentence(chunk, unit.start, unit.end, unit.text, around, count / len(wanted), count / words, words)


@dataclass(frozen=True, slots=True)
class ClaimPassage:
    """A passage with its cosine to the claim, the sentences shown to a judge, and the span nearest to the claim."""

    chunk: Chunk
    paper: Paper
    cosine: float
    sentences: tuple[PassageSentence, ...] = ()
    nearest: tuple[int, int] = (0, 0)

    def source(self, identifier: str) -> Source:
        """The passage as evidence with this id."""
        start, end = self.nearest if self.nearest[1] > self.nearest[0] else (0, len(self.chunk.text))
        evidence = Evidence.of(
            self.chunk,
            id=identifier,
            summary="",
            start=start,
            end=end,
            vector_score=self.cosine,
            llm_score=0.0,
            combined_score=self.cosine,
            source_query="",
        )
        return Source(evidence, self.paper, self.chunk.text, self.chunk.category, self.sentences)

    def record(self, spans: Sequence[tuple[int, int]] = (), does: Does = "") -> PassageRecord:
        """Build the passage's record; quotes the deciding words at `spans`, or without spans the nearest sentence."""
        start, end = (min(first for first, _ in spans), max(last for _, last in spans)) if spans else self.nearest
        return {
            "key": self.chunk.key,
            "title": self.paper.title,
            "year": self.paper.year,
            "chunk_id": self.chunk.id,
            "section": self.chunk.section,
            "page": self.chunk.page_at(start),
            "start": start,
            "end": end,
            "quote": self.chunk.text[start:end],
            "shown": plain_text(self.chunk.text[start:end]),
            "does": does,
            "similarity": round(max(0.0, min(1.0, self.cosine)), 4),
            "sentences": [sentence.text for sentence in self.sentences],
        }


def claim_query(text: str, before: str) -> str:
    """Return the query for a claim, with the sentence before it if the claim depends on it."""
    return f"{needed_context(text, before)} {text}".strip()


def needed_context(text: str, before: str) -> str:
    """The sentence before a claim, if the claim depends on it."""
    return before if is_context_dependent(text) else ""


async def passages_elsewhere(
    library: Library, query: str, without: Collection[str], options: Retrieval
) -> list[ClaimPassage]:
    """Find the nearest passage of each of the nearest papers in the library, except the papers `without`."""
    hits = await retrieve(library, query, _ELSEWHERE_HITS, Scope(), options)
    copied = await asyncio.to_thread(nearest_in_library, library, query, without)
    if len({hit.chunk.key for hit in hits} - set(without)) < _ELSEWHERE_PAPERS:
        # One paper may have all hits: then the papers with the nearest summaries are searched too.
        vector = await library.embedding.embed_query(query)
        near = await asyncio.to_thread(library.nearest_papers, vector, _NEAR_PAPERS + len(without))
        keys = tuple(item.paper.key for item in near if item.paper.key not in without)
        hits = [*hits, *(await retrieve(library, query, _ELSEWHERE_HITS, Scope(papers=keys), options) if keys else ())]
    best: dict[str, ClaimPassage] = {}
    for item in hits:
        if item.chunk.key not in without and item.chunk.category is not Category.RELATED_WORK:
            best.setdefault(item.chunk.key, ClaimPassage(item.chunk, item.paper, item.vector_score))
    found = sorted(best.values(), key=lambda item: -item.cosine)
    if copied is not None and copied.share >= SAME_MATTER:
        # Vectors may miss a sentence that contains the claim verbatim.
        first = await nearest_passage(library, copied, query)
        found = [first, *(item for item in found if item.chunk.key != copied.chunk.key)]
    return found[:_ELSEWHERE_PAPERS]


def nearest_in_library(library: Library, text: str, without: Collection[str] = ()) -> NearSentence | None:
    """The sentence of the library that shares most words with a text; blocks."""
    hits = library.matching(analyze(text), _WORD_HITS + len(without) * _WORD_HITS)
    chunks = [chunk for chunk in library.chunks([name for name, _ in hits]) if chunk.key not in without]
    return SentenceIndex(chunks).nearest(text)


async def nearest_passage(library: Library, near: NearSentence, query: str) -> ClaimPassage:
    """Build the passage that contains a sentence and quotes it."""
    vector = await library.embedding.embed_query(query)
    cosines = await asyncio.to_thread(library.cosines, vector, [near.chunk.id])
    paper = await asyncio.to_thread(library.paper, near.chunk.key)
    return ClaimPassage(near.chunk, paper, cosines.get(near.chunk.id, 0.0), nearest=(near.start, near.end))


def given_passages(given: Sequence[GivenPassage]) -> list[ClaimPassage]:
    """Split texts given instead of papers into passages short enough to show to a judge."""
    found: list[ClaimPassage] = []
    for number, item in enumerate(given, 1):
        paper = Paper(item.get("key") or f"given{number}", item.get("title") or "", year=item.get("year"))
        for index, (start, end) in enumerate(_parts(item["text"])):
            text = item["text"][start:end]
            identifier = f"{paper.key}:{index:05d}"
            tokens = estimate_tokens(text)
            chunk = Chunk(identifier, paper.key, index, text, "", "", Category.OTHER, 1, None, start, end, tokens)
            found.append(ClaimPassage(chunk, paper, 0.0))
    return found


def _parts(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for unit in (item for item in readable_units(text) if item.end > item.start):
        if spans and unit.end - spans[-1][0] <= _GIVEN_CHARACTERS:
            spans[-1] = (spans[-1][0], unit.end)
        else:
            spans.append((unit.start, unit.end))
    return spans or [(0, len(text))]


def choose_sentences(
    claim: str, passages: Sequence[ClaimPassage], tokens: int = CLAIM_TOKENS, most: int | None = None
) -> list[ClaimPassage]:
    """The passages, nearest first, with the sentences that share most words with the claim, within `tokens`.

    Each passage keeps its nearest sentence. At most `most` passages are kept, or one of each paper.
    """
    wanted = _words(claim)
    units = [[(unit, _words(unit[2])) for unit in _units(passage.chunk.text)] for passage in passages]
    frequency = Counter(word for of_passage in units for _, words in of_passage for word in words)
    total = sum(map(len, units)) or 1
    weights = {word: log(1 + total / frequency[word]) for word in wanted if frequency[word]}
    everything = sum(weights.values()) or 1.0
    scores: dict[tuple[int, int], float] = {}
    rank: Counter[str] = Counter()
    for place, passage in enumerate(passages):
        rank[passage.chunk.key] += 1
        ahead = _RANK_WEIGHT / rank[passage.chunk.key] if passage.cosine else 0.0  # given passages have no rank
        for number, (_, words) in enumerate(units[place]):
            scores[place, number] = sum(weights.get(word, 0.0) for word in words) / everything + ahead
    order = sorted(scores, key=lambda at: (-scores[at], at))
    nearest: dict[int, int] = {}
    for place, number in order:
        nearest.setdefault(place, number)
    kept = [*nearest, *(place for place in range(len(passages)) if place not in nearest)]
    if most is not None:
        first = {passages[place].chunk.key: place for place in reversed(kept)}
        kept = sorted(kept, key=lambda place: first[passages[place].chunk.key] != place)[: max(most, len(first))]
    chosen: set[tuple[int, int]] = set()
    for at in dict.fromkeys([*((place, nearest[place]) for place in kept if place in nearest), *order]):
        place, number = at
        needed = {at, (place, number - 1)} if number and is_context_dependent(units[place][number][0][2]) else {at}
        cost = sum(estimate_tokens(units[place][index][0][2]) for _, index in needed - chosen)
        if place in kept and (cost <= tokens or nearest[place] == number):
            chosen |= needed
            tokens -= cost
    return [
        replace(
            passage,
            sentences=tuple(
                PassageSentence(passage.chunk.id, start, end, f"{text} [cites {', '.join(cited)}]" if cited else text)
                for number, ((start, end, text, cited), _) in enumerate(units[place])
                if (place, number) in chosen
            ),
            nearest=units[place][nearest[place]][0][:2] if place in nearest else (0, len(passage.chunk.text)),
        )
        for place in kept
        for passage in [passages[place]]
    ]


@lru_cache(maxsize=4096)
def _units(text: str) -> tuple[tuple[int, int, str, tuple[str, ...]], ...]:
    return tuple(
        (unit.start, unit.end, unit.text, cited_in(text[unit.start : unit.end])) for unit in readable_units(text)
    )


def cited_in(words: str) -> tuple[str, ...]:
    """The works that words of a paper cite, as the words name them."""
    works = [work.shown for mark in find_marks(words[:4_000]) for work in mark.works]
    return tuple(dict.fromkeys(works))[:_MOST_CITED]


@lru_cache(maxsize=8192)
def _words(text: str) -> frozenset[str]:
    return frozenset(word.form for word in split_words(text) if not is_stop(word) and not is_generic(word.form)) or (
        frozenset(word.form for word in split_words(text))
    )


def paper_sentences(library: Library, key: str) -> SentenceIndex:
    """Index the sentences of a whole paper; empty if the library no longer has it. Blocks."""
    try:
        return SentenceIndex(library.paper_chunks(key))
    except UnknownPaperError:
        return SentenceIndex(())
