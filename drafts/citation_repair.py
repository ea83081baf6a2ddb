"""Adds markers to a draft that can be found without a model; the judge then compares the sentences with them.

The first sentence of a paragraph often only announces or sums up what the cited ones say, and a number may stand in
another passage of a paper that its sentence cites.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from ..citations.checks.citation_coverage import unsupported_findings
from ..citations.checks.number_tracing import number_findings
from ..citations.markers import CitedSentence, sentences
from ..experiment import Experiment
from ..roles.protocols import Source
from ..text.wordings import telling_words

_BREAK: Final = re.compile(r"\n[ \t]*(?:\n|(?:[-*+]|\d{1,3}[.)])[ \t])")
_LIST_MARK: Final = 5  # characters of a sentence that may belong to the break before it
_MOST: Final = 4  # markers for a sentence that sums up
_AFTER_WORDS: Final = " \t\n.!?\u2026*_"


def complete_citations(text: str, sources: Sequence[Source], experiment: Experiment, *, answer: bool) -> str:
    """A normalised text with the markers added; only an `answer` needs one in every sentence."""
    known = {source.evidence.id for source in sources}
    added = _of_paragraphs(text) if answer else {}
    for sentence in sentences(text):
        added.setdefault(sentence.start, []).extend(_of_numbers(sentence, sources, experiment))
    for sentence in reversed(sentences(text)):
        if names := [name for name in dict.fromkeys(added[sentence.start]) if name in known]:
            place = sentence.start + len(sentence.text.rstrip(_AFTER_WORDS))
            blank = "" if text[place - 1] == "]" else " "
            text = f"{text[:place]}{blank}{''.join(f'[{name}]' for name in names)}{text[place:]}"
    return text


def _of_paragraphs(text: str) -> dict[int, list[str]]:
    """What the rest of a paragraph or list item cites, for each first sentence that needs a citation, by its start."""
    lacking = {finding.span for finding in unsupported_findings(text)}
    breaks = [match.start() for match in _BREAK.finditer(text)]
    found: dict[int, list[str]] = {}
    for _, group in groupby(sentences(text), lambda it: sum(place < it.start + _LIST_MARK for place in breaks)):
        first, *others = group
        if (first.start, first.end) in lacking:
            words = telling_words(first.text).keys()
            near = sorted(others, key=lambda other: -len(words & telling_words(other.text).keys()))
            found[first.start] = list(dict.fromkeys(name for other in near for name in other.ids))[:_MOST]
    return found


def _of_numbers(sentence: CitedSentence, sources: Sequence[Source], experiment: Experiment) -> list[str]:
    """The passages of the papers that a sentence cites which have a number that it takes from none of its own."""
    papers = {source.paper.key for source in sources if source.evidence.id in sentence.ids}
    same = [source for source in sources if source.paper.key in papers]
    return [name for finding in number_findings(sentence.text, same, experiment) for name in finding.ids]
