"""Finds sentences that a paper repeats, within a section or across sections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..markers import MARKER, CitedSentence, sentences
from .findings import Finding, shown
from .foreign_citations import NEEDED

FEWEST_WORDS = 6

_WORD = re.compile(r"[^\W_]+(?:[.,]\d+)*")


def wording(sentence: str) -> str:
    """A sentence reduced to its words: without markers, case, punctuation and whitespace."""
    return " ".join(_WORD.findall(MARKER.sub(" ", sentence).replace(NEEDED, " ").casefold()))


def repeated_findings(text: str, earlier: Mapping[str, str]) -> list[Finding]:
    """A finding for each repeated sentence of a normalised draft.

    Args:
        text: the draft.
        earlier: the texts of the paper's other sections, by name.
    """
    return [
        Finding(
            "repeated-sentence",
            f'"{shown(sentence.text)}" stands {place} already.',
            (sentence.start, sentence.end),
        )
        for sentence, place in _repeats(text, earlier)
    ]


def _repeats(text: str, earlier: Mapping[str, str]) -> Iterator[tuple[CitedSentence, str]]:
    """The repeated sentences, and where each first occurred."""
    seen = {words: f"in the {name}" for name, other in earlier.items() for words in _worded(sentences(other))}
    for sentence in sentences(text):
        words = wording(sentence.text)
        if words.count(" ") + 1 < FEWEST_WORDS:
            continue
        if words in seen:
            yield sentence, seen[words]
        seen.setdefault(words, "in this section")


def _worded(found: Sequence[CitedSentence]) -> Iterator[str]:
    for sentence in found:
        yield wording(sentence.text)
