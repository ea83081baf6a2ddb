"""Finds repetition: words copied from a source without quotation marks, and sentences that a paper repeats.

Copied words are compared ignoring case, punctuation, emphasis and the citations between them. Runs that also occur in
the experiment are the user's own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...roles.protocols import Source
from ..markers import MARKER, quoted_spans, sentences
from .fabricated_citations import NEEDED
from .findings import Finding, shorten_words
from .unicode_folding import fold

LONGEST_RUN = 12
_WINDOW = LONGEST_RUN + 1
_WORD = re.compile(r"[^\W_]+")
_JOINED = re.compile(r"[^\W_][-']\Z")
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


def copied_findings(text: str, sources: Sequence[Source], own_words: str) -> list[Finding]:
    """Copied runs of more than `LONGEST_RUN` words outside quotation marks, in order and without overlap.

    A run of many compounds may have too few words to count.
    """
    known = [(source.evidence.id, _windows(source.text)) for source in sources]
    runs: list[Finding] = []
    quoted = quoted_spans(text)
    starts = [start for start, _ in quoted]
    stretches: list[list[_WordSpan]] = [[]]  # of words between quotations
    before = -1
    for word in _words(text):
        index = bisect_right(starts, word.start) - 1
        if index != before:
            stretches.append([])
            before = index
        if index < 0 or word.start >= quoted[index][1]:
            stretches[-1].append(word)
    for stretch in stretches:
        folded = [word.folded for word in stretch]
        found: list[tuple[int, int, str]] = []  # the runs of overlapping windows
        for index in range(len(stretch) - _WINDOW + 1):
            window = " ".join(folded[index : index + _WINDOW])
            identifier = next((id for id, windows in known if window in windows), None)
            # Checked last: the output of an experiment may be megabytes.
            if identifier is None or window in _windows(own_words):
                continue
            if found and index < found[-1][1]:
                found[-1] = (found[-1][0], index + _WINDOW, found[-1][2])
            else:
                found.append((index, index + _WINDOW, identifier))
        for first, last, identifier in found:
            words = 1 + sum(word.first for word in stretch[first + 1 : last])
            if words > LONGEST_RUN:
                start, end = stretch[first].start, stretch[last - 1].end
                said = (
                    f'"{shorten_words(text[start:end])}" repeats {words} words of {identifier} without quotation marks.'
                )
                runs.append(Finding("copied-run", said, (start, end), (identifier,)))
    return runs


@lru_cache(maxsize=256)
def _windows(text: str) -> frozenset[str]:
    folded = [word.folded for word in _words(text)]
    return frozenset(" ".join(folded[index : index + _WINDOW]) for index in range(len(folded) - _WINDOW + 1))


def _words(text: str) -> list[_WordSpan]:
    view = fold(text)
    seen = _BETWEEN.sub(lambda match: " " * len(match[0]), view.text)
    found: list[_WordSpan] = []
    for match in _WORD.finditer(seen):
        joined = _JOINED.match(seen, max(0, match.start() - 2), match.start())
        found.append(_WordSpan(match[0].casefold(), *view.span(*match.span()), joined is None))
    return found


FEWEST_WORDS = 6

_WORD_OR_NUMBER = re.compile(r"[^\W_]+(?:[.,]\d+)*")


def wording(sentence: str) -> str:
    """A sentence reduced to its words: without markers, case, punctuation and whitespace."""
    return " ".join(_WORD_OR_NUMBER.findall(MARKER.sub(" ", sentence).replace(NEEDED, " ").casefold()))


def repeated_findings(text: str, earlier: Mapping[str, str]) -> list[Finding]:
    """A finding for each sentence that a normalised draft repeats, or that another section of the paper has."""
    seen = {wording(one.text): f"in the {name}" for name, other in earlier.items() for one in sentences(other)}
    found: list[Finding] = []
    for sentence in sentences(text):
        words = wording(sentence.text)
        if words.count(" ") + 1 < FEWEST_WORDS:
            continue
        if words in seen:
            found.append(Finding.about(sentence, "repeated-sentence", f"is already {seen[words]}."))
        seen.setdefault(words, "in this section")
    return found
