"""Finds the sentence of a paper whose words are nearest to those of a claim, and what differs between the two.

No model is asked. Only sentences that share most of their words are compared in detail: there, a number, a year, a
name, "not", or "increased" in place of "decreased" is a difference and not another way to say it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Final

from ..documents import Chunk
from ..documents.passages import readable_units
from ..text.words import is_stop, read_rules, shorten, split_words, stem
from .claim_records import FaultRecord, fault

_FEWEST: Final = 3  # minimum words of a claim that is compared with sentences
_LONGEST: Final = 2_000  # characters
# Minimum shares of a claim's words for a sentence to be about the same thing, and to say nearly the same thing.
SAME_MATTER: Final = 0.6
SAME_WORDS: Final = 0.8
_SAME_BACK: Final = 0.55  # of the sentence's words, that the claim has
_LEAST_COPIED: Final = 7  # words
SHOWN_WORDS: Final = 160  # characters of a sentence in a message

_TOKEN: Final = re.compile(r"\d[\d.,]*\d|\d|[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_RULES: Final = read_rules(__file__, "sentence_rules")["compared"]
_NEGATION, _UNSAID = (frozenset(_RULES[name].split()) for name in ("negation", "unsaid"))
_NOT_ONLY: Final = re.compile(_RULES["not_only"], re.IGNORECASE)
_OPPOSITES: Final = frozenset(frozenset(map(stem, pair.split())) for pair in _RULES["opposites"])
_CONTRACTED: Final = re.compile(
    r"\b(?:can|(?:do|does|did|is|are|was|were|has|have|had|could|would|should)n)['\u2019]t\b"
)
_YEAR: Final = re.compile(r"(?:1[5-9]|20)\d\d")
_BEHIND: Final = 3  # words that both have behind a replaced one, by which it is the same place


@dataclass(frozen=True, slots=True)
class NearSentence:
    """The sentence at `start:end` of a passage with most of a claim's words, alone and with its neighbours (`around`).

    `share` (0-1) is the share of the claim's words that it has, `back` the share of its words that the claim has.
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


def wording_faults(claim: str, near: NearSentence, key: str, paper: str = "") -> Iterator[FaultRecord]:
    """How a claim differs from a sentence of nearly the same words in a paper, apart from its numbers.

    Of a sentence with fewer of its words, only a negation counts whose word the `paper` denies nowhere.
    """
    if near.share < SAME_MATTER:
        return
    same = near.share >= SAME_WORDS
    quoted = f'{key} has "{shorten(near.text, SHOWN_WORDS)}"'
    if polarity_differs(claim, near.text) if same else _denies(claim, near.text, paper or near.chunk.text):
        yield fault("polarity-differs", f"It says the opposite of its source: {quoted}.")
    for one, other, _ in _replaced(claim, near.text) if same else ():
        if _YEAR.fullmatch(one) and _YEAR.fullmatch(other) and one not in near.around:
            yield fault("year-differs", f"{one}: {quoted}.")
        elif one[:1].isupper() and other[:1].isupper() and one.casefold() not in near.around.casefold():
            yield fault("name-differs", f"{one}: {quoted}.")


def polarity_differs(claim: str, sentence: str) -> bool:
    """Whether one of two sentences of nearly the same words denies what the other says."""
    if _denies(claim, sentence) or _denies(sentence, claim):
        return True
    said = {stem(word) for word in _TOKEN.findall(sentence)}
    return any(
        frozenset((stem(one), stem(other))) in _OPPOSITES and (stem(one) not in said or content_words(behind))
        for one, other, behind in _replaced(claim, sentence)
    )


def _denies(one: str, other: str, paper: str = "") -> bool:
    """Whether a text denies a word that another says beside the same word, and neither it nor the `paper` denies."""
    words, denied = _negated(one)
    plain, places = _negated(other)
    said = {pair for place, pair in enumerate(pairwise(plain)) if not {place, place + 1} & {*places}}
    found = {
        words[place]
        for place in denied
        if place < len(words) and any(pair in said for pair in pairwise(words[max(0, place - 1) : place + 2]))
    }
    for text in (other, *paper.split("\n")) if found else ():
        words, denied = _negated(text)
        found -= {words[place] for place in denied if place < len(words)}
    return bool(found)


def _negated(text: str) -> tuple[list[str], list[int]]:
    """The words of a sentence without negations, and the places in them where one stood."""
    words: list[str] = []
    places: list[int] = []
    plain = _CONTRACTED.sub(" not ", _NOT_ONLY.sub(" ", text[:_LONGEST]))
    for word in (found.casefold() for found in _TOKEN.findall(plain)):
        if word in _NEGATION:
            places.append(len(words))
        elif word not in _UNSAID:
            words.append(stem(word))
    return words, places


def _replaced(claim: str, sentence: str) -> Iterator[tuple[str, str, str]]:
    """Pairs of a word of the claim and the word of the sentence that it replaces, and the words behind in both."""
    mine, ours = _TOKEN.findall(claim[:_LONGEST]), _TOKEN.findall(sentence[:_LONGEST])
    matcher = SequenceMatcher(None, [word.casefold() for word in mine], [word.casefold() for word in ours], False)
    codes = matcher.get_opcodes()
    for (kind, first, last, start, end), follows in zip(codes, [*codes[1:], None], strict=True):
        if kind == "replace" and last - first == end - start <= 2 and first > 0:
            behind = " ".join(mine[follows[1] : follows[2]][:_BEHIND]) if follows else ""
            yield from ((one, other, behind) for one, other in zip(mine[first:last], ours[start:end], strict=True))
