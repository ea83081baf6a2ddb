"""Finds pairs of findings that may disagree, within and between papers, by the words of their statements.

The pairs are hints for a writer, who sees the words of both and reports both sides if they disagree. A pair must be
about the same outcome (the words around what rose, fell or did not differ) and the same comparison: no two different
treatments, groups or times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from ..text.wordings import NAMED, Direction, direction, outcome_words, telling_words
from .protocols import Source

_MOST_PAIRS: Final = 6
_MOST_SOURCES: Final = 120
_LEAST_SHARED: Final = 3  # words that both statements have
_SHARE: Final = 0.5  # of the words of the shorter statement
_SHARE_BETWEEN: Final = 0.6  # if the findings are from two papers
_SHARE_OF_LONGER: Final = 0.35
_OUTCOME_SHARE: Final = 0.5  # of the words of the shorter outcome
# "at 6 months", "after 12 weeks", "of 50 mg": conditions under which results may differ without a disagreement
_CONDITION: Final = re.compile(
    r"\b(\d{1,6}(?:[.,]\d{1,3})?)[\s-]?(hour|day|week|month|year|mg|g|kg|ml|mM|°C|km|min)s?\b", re.IGNORECASE
)
_EXAMINED: Final = 1_000  # characters of a statement
_OF_MEASURE: Final = frozenset(
    {"signific", "ci", "rr", "or", "hr", "sd", "se", "auc", "vs", "interval", "ratio", "odd"}
)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two findings that may contradict each other.

    `inside` if both are from one paper, `of_none` if one finds no effect. `outcome` are the shared words for the
    outcome.
    """

    first: Source
    second: Source
    inside: bool
    of_none: bool
    share: float
    outcome: frozenset[str]

    @property
    def line(self) -> str:
        """The pair on one line, with markers and sections."""
        one, other = self.first.evidence, self.second.evidence
        where = f"one paper, {one.section} against {other.section}" if self.inside else "two papers"
        return f"[{one.id}] and [{other.id}] ({where})"


@dataclass(frozen=True, slots=True)
class _DirectedResult:
    """A finding's direction (which way its outcome went), and the words for its outcome."""

    source: Source
    way: Direction
    outcome: frozenset[str]
    words: dict[str, int]
    conditions: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, source: Source) -> _DirectedResult:
        said = source.evidence.summary
        weighted = telling_words(said).items()
        words = {
            word: weight
            for word, weight in weighted
            if not (word[0].isdigit() or word in _OF_MEASURE or direction(word))
        }
        conditions = {(number, unit.lower()) for number, unit in _CONDITION.findall(said[:_EXAMINED])}
        outcome = frozenset(word for word in outcome_words(said) if word in words)
        return cls(source, direction(said), outcome, words, frozenset(conditions))

    @property
    def named(self) -> set[str]:
        return {word for word, weight in self.words.items() if weight >= NAMED}

    def compares_as(self, other: _DirectedResult) -> bool:
        """Whether both may be about one comparison: at most one names what the other lacks; times and doses agree."""
        if self.named - other.words.keys() and other.named - self.words.keys():
            return False
        return not (self.conditions and other.conditions) or self.conditions == other.conditions


def find_disagreements(sources: Sequence[Source]) -> list[Disagreement]:
    """Find pairs about one outcome of one comparison that differ in its direction, the most similar first."""
    results = [result for result in map(_DirectedResult.of, sources[:_MOST_SOURCES]) if result.way]
    return sorted(_pairs(results), key=lambda pair: (not pair.inside, -pair.share))[:_MOST_PAIRS]


def _pairs(results: Sequence[_DirectedResult]) -> Iterator[Disagreement]:
    for one, other in combinations(results, 2):
        if one.way == other.way or not one.compares_as(other):
            continue
        shared, outcome = one.words.keys() & other.words.keys(), one.outcome & other.outcome
        less, more = sorted((len(one.words), len(other.words)))
        inside = one.source.paper.key == other.source.paper.key
        least = max(_LEAST_SHARED, (_SHARE if inside else _SHARE_BETWEEN) * less, _SHARE_OF_LONGER * more)
        share = len(shared) / max(1, less)
        if len(shared) >= least and len(outcome) >= _OUTCOME_SHARE * min(len(one.outcome), len(other.outcome)) > 0:
            yield Disagreement(one.source, other.source, inside, "none" in (one.way, other.way), share, outcome)
