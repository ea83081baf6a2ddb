"""Selects what a judge or a repair is shown of a source: the words of the finding, and relevant sentences around them.

A cited sentence often uses a detail next to the finding's words: the country, the cell type, what "it" means. Judged
without it, a true detail looks invented. So neighbouring sentences are shown too, and sentences of the finding's window
that have the cited sentence's missing words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...text.sentences import is_context_dependent
from ...text.wordings import NAMED, telling_words
from ..protocols import DecidingSpan, PassageSentence, Source
from .prompt_format import estimate_tokens, full_heading

_GAP: Final = 3  # maximum characters between adjacent sentences: a paragraph break
_BEFORE: Final = 2  # sentences shown before each run of words; more if the first depends on the one before it
_MOST_BEFORE: Final = 4
_AFTER: Final = 1
_AROUND_TOKENS: Final = 120  # of sentences around the words of a finding
_MISSING_TOKENS: Final = 120  # of sentences with missing words
_MOST_FOUND: Final = 3


@dataclass(frozen=True, slots=True)
class JudgedPassage:
    """A source as the judge sees it, with sentences numbered from 1."""

    source: Source
    sentences: tuple[PassageSentence, ...]

    @classmethod
    def of(cls, source: Source, tokens: int, said: Sequence[str] = ()) -> JudgedPassage:
        """Take the sentences shown to the writer, and nearby ones that bear on the citing sentences (`said`)."""
        return cls(source, _fit_sentences(shown_sentences(source, said), tokens))

    @property
    def tokens(self) -> int:
        return sum(estimate_tokens(sentence.text) for sentence in self.sentences)

    def spans(self, numbers: Sequence[int]) -> tuple[DecidingSpan, ...]:
        """Return the spans with these numbers; adjacent sentences are merged, unknown numbers are ignored."""
        found: list[DecidingSpan] = []
        for number in sorted(set(numbers)):
            if not 1 <= number <= len(self.sentences):
                continue
            item = self.sentences[number - 1]
            last = found[-1] if found else None
            if last is not None and last.chunk_id == item.chunk_id and 0 <= item.start - last.end <= _GAP:
                found[-1] = DecidingSpan(last.chunk_id, last.start, item.end)
            else:
                found.append(DecidingSpan(item.chunk_id, item.start, item.end))
        return tuple(found)


def shown_sentences(source: Source, said: Sequence[str]) -> tuple[PassageSentence, ...]:
    """Return the passage of a source with the sentences of its window needed to judge what is `said`, in order."""
    if not source.window:
        return source.shown_sentences
    window, own = source.window, set(source.passage)
    places = {place for place, sentence in enumerate(window) if sentence in own}
    places |= _take_fitting(window, _around(window, sorted(places)), _AROUND_TOKENS)
    return tuple(window[place] for place in sorted(places | _holding_missing(source, places, said)))


def _around(window: Sequence[PassageSentence], places: Sequence[int]) -> list[int]:
    near: list[int] = []
    for place in places:
        step = 1
        while step <= _MOST_BEFORE and place >= step:
            near.append(place - step)
            if step >= _BEFORE and not is_context_dependent(window[place - step].text):
                break
            step += 1
        near += range(place + 1, min(place + _AFTER + 1, len(window)))
    return [place for place in dict.fromkeys(near) if place not in places]


def _take_fitting(window: Sequence[PassageSentence], places: Sequence[int], tokens: int) -> set[int]:
    """Take the places that fit, in order; one too large, such as a table, is skipped."""
    kept: set[int] = set()
    for place in places:
        cost = estimate_tokens(window[place].text)
        if cost <= tokens:
            kept.add(place)
            tokens -= cost
    return kept


def _holding_missing(source: Source, places: set[int], said: Sequence[str]) -> set[int]:
    """Find the sentences with most of the citing sentences' words that nothing shown has."""
    heading = full_heading(source.parent, source.evidence.section)
    known = telling_words(" ".join([source.paper.title, heading, *(source.window[place].text for place in places)]))
    weights = {word: weight for sentence in said for word, weight in telling_words(sentence).items()}
    missing = weights.keys() - known.keys()
    held = {
        place: missing & telling_words(sentence.text).keys()
        for place, sentence in enumerate(source.window)
        if place not in places
    }
    found: list[int] = []
    while held and len(found) < _MOST_FOUND:
        best = max(held, key=lambda place: (sum(weights[word] for word in held[place]), -place))
        words = held.pop(best)
        if sum(weights[word] for word in words) < NAMED:  # one common word
            break
        found.append(best)
        held = {place: others - words for place, others in held.items()}
    return _take_fitting(source.window, found, _MISSING_TOKENS)


def _fit_sentences(sentences: Sequence[PassageSentence], tokens: int) -> tuple[PassageSentence, ...]:
    """Take the sentences that fit; drops context first, then the last sentences."""
    if sum(estimate_tokens(item.text) for item in sentences) <= tokens:
        return tuple(sentences)
    kept: list[PassageSentence] = []
    for item in [item for item in sentences if item.carries] or sentences:
        tokens -= estimate_tokens(item.text)
        if kept and tokens < 0:
            break
        kept.append(item)
    return tuple(kept)
