"""Finds repetition: words copied from a source without quotation marks, and sentences that a paper repeats.

Copied words are compared ignoring case, punctuation, emphasis and the citations between them. Runs that also occur in
the experiment are the user's own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...experiment import Experiment
from ...roles.protocols import Source
from ..markers import MARKER, CitedSentence, sentences
from ..quotations import quoted_spans
from .fabricated_citations import NEEDED
from .findings import Finding, shown
from .unicode_folding import fold

LONGEST_RUN = 12
_WINDOW = LONGEST_RUN + 1
_WORD = re.compile(r"[^\W_]+")
# Citations and link targets between words do not count as words.
_BETWEEN = re.compile(
    r"\[[^\[\]@]{0,80}@[^\[\]]{0,300}\]|\[(?:E?[0-9][E0-9,;\s-]{0,60})\]|\^\[?[0-9][0-9,\s-]{0,40}\]?\^"
    r"|\([^()]{0,120}\b(?:1[5-9]|20)[0-9]{2}[a-z]?\)|(?<=\])\([^()\s]{0,300}\)"
)


@dataclass(frozen=True, slots=True)
class _WordSpan:
    """A word or part of a compound; `first` unless a hyphen or apostrophe joins it to the preceding part."""

    folded: str
    start: int
    end: int
    first: bool


@dataclass(frozen=True, slots=True)
class CopiedRun:
    """`text[start:end]` repeats `words` words of a source."""

    start: int
    end: int
    words: int
    evidence_id: str


def copied_runs(text: str, sources: Sequence[Source], own_words: str) -> list[CopiedRun]:
    """Copied runs of more than `LONGEST_RUN` words outside quotation marks, in order and without overlap."""
    known = [(source.evidence.id, _windows(source.text)) for source in sources]
    runs: list[CopiedRun] = []
    for stretch in _unquoted(text):
        folded = [word.folded for word in stretch]
        heads: dict[int, str] = {}
        for index in range(len(stretch) - _WINDOW + 1):
            window = " ".join(folded[index : index + _WINDOW])
            identifier = next((id for id, windows in known if window in windows), None)
            # Checked last: the output of an experiment may be megabytes.
            if identifier is not None and window not in _windows(own_words):
                heads[index] = identifier
        runs += _joined(stretch, heads)
    return runs


def copied_findings(text: str, sources: Sequence[Source], experiment: Experiment) -> list[Finding]:
    """A finding for each copied run."""
    return [
        Finding(
            "copied-run",
            f'"{shown(text[run.start : run.end])}" repeats {run.words} words of {run.evidence_id} without quotation'
            " marks.",
            (run.start, run.end),
            (run.evidence_id,),
        )
        for run in copied_runs(text, sources, experiment.words())
    ]


def _unquoted(text: str) -> list[list[_WordSpan]]:
    """The words of a text, split into stretches at quotations."""
    quoted = quoted_spans(text)
    starts = [start for start, _ in quoted]
    stretches: list[list[_WordSpan]] = [[]]
    before = -1
    for word in _words(text):
        index = bisect_right(starts, word.start) - 1
        if index != before:
            stretches.append([])
            before = index
        if index < 0 or word.start >= quoted[index][1]:
            stretches[-1].append(word)
    return [stretch for stretch in stretches if len(stretch) >= _WINDOW]


def _joined(stretch: Sequence[_WordSpan], heads: dict[int, str]) -> list[CopiedRun]:
    """Merge overlapping windows into runs; a run of many compounds may have too few words to count."""
    found: list[tuple[int, int, str]] = []
    for index, identifier in sorted(heads.items()):
        if found and index < found[-1][1]:
            found[-1] = (found[-1][0], index + _WINDOW, found[-1][2])
        else:
            found.append((index, index + _WINDOW, identifier))
    runs = [
        CopiedRun(stretch[first].start, stretch[last - 1].end, _count(stretch[first:last]), identifier)
        for first, last, identifier in found
    ]
    return [run for run in runs if run.words > LONGEST_RUN]


def _count(words: Sequence[_WordSpan]) -> int:
    return sum(word.first or index == 0 for index, word in enumerate(words))


@lru_cache(maxsize=256)
def _windows(text: str) -> frozenset[str]:
    folded = [word.folded for word in _words(text)]
    return frozenset(" ".join(folded[index : index + _WINDOW]) for index in range(len(folded) - _WINDOW + 1))


def _words(text: str) -> list[_WordSpan]:
    view = fold(text)
    seen = _BETWEEN.sub(lambda match: " " * len(match[0]), view.text)
    return [
        _WordSpan(match[0].casefold(), *view.span(*match.span()), not _joins(seen, match.start()))
        for match in _WORD.finditer(seen)
    ]


def _joins(seen: str, start: int) -> bool:
    return seen[max(0, start - 1) : start] in ("-", "'") and seen[max(0, start - 2) : start - 1].isalnum()


FEWEST_WORDS = 6

_WORD_OR_NUMBER = re.compile(r"[^\W_]+(?:[.,]\d+)*")


def wording(sentence: str) -> str:
    """A sentence reduced to its words: without markers, case, punctuation and whitespace."""
    return " ".join(_WORD_OR_NUMBER.findall(MARKER.sub(" ", sentence).replace(NEEDED, " ").casefold()))


def repeated_findings(text: str, earlier: Mapping[str, str]) -> list[Finding]:
    """A finding for each repeated sentence of a normalised draft.

    Args:
        text: the draft.
        earlier: the texts of the paper's other sections, by name.
    """
    return [
        Finding(
            "repeated-sentence",
            f'"{shown(sentence.text)}" is already {place}.',
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
