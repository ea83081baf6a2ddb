"""Finds pairs of findings that may disagree, inside one paper and between papers, by the words of their statements.

The pairs are hints: a writer is shown them beside the words of both, and says both sides where they do disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from ..text.statement_words import Direction, direction, telling_words
from .protocols import Source

_MOST_PAIRS: Final = 6
_MOST_SOURCES: Final = 120
_LEAST_SHARED: Final = 3  # words of the subject that both statements have
_SHARE: Final = 0.4  # of the words of the shorter statement
_SHARE_OF_OPPOSITES: Final = 0.55  # "higher error" and "lower accuracy" agree, so opposites need the same subject


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two findings of which one may say what the other denies.

    `inside` if both are from one paper, `of_none` if one finds no effect.
    """

    first: Source
    second: Source
    inside: bool
    of_none: bool
    share: float

    @property
    def line(self) -> str:
        """The pair on one line, with their markers and sections."""
        one, other = self.first.evidence, self.second.evidence
        where = f"one paper, {one.section} against {other.section}" if self.inside else "two papers"
        return f"[{one.id}] and [{other.id}] ({where})"


def find_disagreements(sources: Sequence[Source]) -> list[Disagreement]:
    """The pairs whose statements share their subject and differ in direction, the most alike first."""
    directed = [(source, direction(source.evidence.summary)) for source in sources[:_MOST_SOURCES]]
    found = sorted(_pairs([item for item in directed if item[1]]), key=lambda pair: (not pair.inside, -pair.share))
    return found[:_MOST_PAIRS]


def _pairs(directed: Sequence[tuple[Source, Direction]]) -> Iterator[Disagreement]:
    words = {source.evidence.id: _subject(source) for source, _ in directed}
    for (one, first), (other, second) in combinations(directed, 2):
        if first == second:
            continue
        shared = words[one.evidence.id] & words[other.evidence.id]
        share = len(shared) / max(1, min(len(words[one.evidence.id]), len(words[other.evidence.id])))
        of_none = "none" in (first, second)
        least = _SHARE if of_none else _SHARE_OF_OPPOSITES
        if len(shared) >= _LEAST_SHARED and share >= least:
            yield Disagreement(one, other, one.paper.key == other.paper.key, of_none, share)


def _subject(source: Source) -> set[str]:
    return {word for word in telling_words(source.evidence.summary) if not word[0].isdigit() and not direction(word)}
