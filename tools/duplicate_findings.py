"""Detects findings that rest on the same words of a paper, which are one piece of evidence.

Neighbouring chunks share their border, so two windows show the same sentence; one of them may contain only its start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..roles.protocols import PassageFinding

_FEWEST_SHARED: Final = 40  # characters; shorter words contained in others may be from another place


@dataclass(frozen=True, slots=True)
class Words:
    """The words that a finding rests on: the paper's key, and for each run its chunk id and its text on one line."""

    key: str
    runs: tuple[tuple[str, str], ...]

    @classmethod
    def of_finding(cls, finding: PassageFinding) -> Words:
        """The words of a finding."""
        runs = ((chunk.id, chunk.text[start:end]) for chunk, start, end in finding.spans)
        return cls(finding.paper.key, tuple((name, " ".join(text.split())) for name, text in runs))

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Words:
        """The words of an evidence record of the state."""
        runs = [(record["chunk_id"], record["quote"])]
        runs += [(span["chunk_id"], span["quote"]) for span in record.get("more", ())]
        return cls(record["key"], tuple((name, " ".join(text.split())) for name, text in runs))

    @property
    def length(self) -> int:
        """The number of characters of all runs."""
        return sum(len(text) for _, text in self.runs)

    def same_as(self, other: Words) -> bool:
        """True when both are the same words, or one contains the other and they are from different chunks.

        Within one chunk, a part of the words is another finding: a reader returned both.
        """
        if self.key != other.key:
            return False
        if {text for _, text in self.runs} == {text for _, text in other.runs}:
            return True
        less, more = sorted((self, other), key=lambda words: words.length)
        return less.length >= _FEWEST_SHARED and all(
            any(name != holder and text in whole for holder, whole in more.runs) for name, text in less.runs
        )


def first_same(words: Words, among: Sequence[Words]) -> int | None:
    """The index of the first entry with the same words."""
    return next((place for place, other in enumerate(among) if words.same_as(other)), None)
