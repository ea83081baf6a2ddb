"""Matches passages of sources with statements of a section.

A passage is matched with a statement only when both mention a theme of the experiment, and when the embedding finds
the passage near to the statement and to the experiment as a whole. Weak matches are left out: a section with few
citations is better than one with a source that does not fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...documents import Category
from ...text.words import is_generic, words_of
from ..inputs import Source
from .quotable_sentences import QuotablePassage
from .themes import Theme, themes_in

# Cosines of bge-small on sentences of real papers: unrelated pairs are near 0.5, related ones above 0.65.
MIN_FACT_COSINE = 0.62
MIN_TOPIC_COSINE = 0.60
# The weaker the theme that two sentences share, the nearer they must be: a phrase that recurs in the experiment is
# sufficient by itself, a phrase used once or a single word only between close sentences.
MIN_SCORE = 0.71
MIN_SCORE_ON_WORD = 0.74
MIN_SCORE_ON_WEAK_PHRASE = 0.80
STRONG_THEME = 2.0
# Abbreviations and names such as DWPC, MGLasso, word2vec.
_COINED = re.compile(r"\b(?=\w*[A-Z]\w*[A-Z]|\w*[a-z]\d)\w{3,}\b")
MOST_SHARED = 5.0


@dataclass(frozen=True, slots=True)
class Quotable:
    """A passage of a source with its themes and its nearness to the experiment as a whole."""

    source: Source
    passage: QuotablePassage
    themes: tuple[Theme, ...]
    topic_cosine: float


@dataclass(frozen=True, slots=True)
class Match:
    """A passage that fits the statement at index `fact`, and their common theme."""

    fact: int
    quotable: Quotable
    theme: Theme
    score: float


@dataclass(frozen=True, slots=True)
class MatchLimits:
    """The maximum number of sources for a section, a statement and a paper."""

    section: int
    fact: int = 2
    paper: int = 2
    theme: int = 3


@dataclass(slots=True)
class _Taken:
    facts: Counter[int] = field(default_factory=Counter)
    papers: Counter[str] = field(default_factory=Counter)
    themes: Counter[tuple[str, ...]] = field(default_factory=Counter)
    evidence: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)


def candidate_matches(
    facts: Sequence[str],
    quotables: Sequence[Quotable],
    cosines: NDArray[np.float32],
    themes: Sequence[Theme],
    preferred: Mapping[Category, float],
    known: str,
    stricter: float = 0.0,
) -> list[Match]:
    """All pairs above the thresholds.

    Args:
        facts: the statements that may get sources.
        quotables: the passages.
        cosines: of statements and passages, [facts, quotables].
        themes: of the experiment.
        preferred: a bonus by the category of the passage's section.
        known: the experiment's own words.
        stricter: raises the required score.
    """
    found: list[Match] = []
    for number, fact in enumerate(facts):
        forms = {word.form for word in words_of(fact)}
        whole = {theme.forms for theme in themes_in(fact, themes)}
        for position, quotable in enumerate(quotables):
            cosine = float(cosines[number, position])
            if cosine < MIN_FACT_COSINE or quotable.topic_cosine < MIN_TOPIC_COSINE:
                continue
            shared = [(_affinity(theme, forms, whole), theme) for theme in quotable.themes]
            strength, theme = max(shared, key=lambda pair: pair[0], default=(0.0, None))
            if theme is None or strength <= 0:
                continue
            both = sum(sorted((value for value, _ in shared), reverse=True)[:3])
            score = 0.65 * cosine + 0.35 * quotable.topic_cosine + 0.02 * min(both, MOST_SHARED)
            score += preferred.get(quotable.source.category, 0.0) - _of_its_own(quotable.passage.text, known)
            if score >= _needed(theme) + stricter:
                found.append(Match(number, quotable, theme, score))
    return found


def _of_its_own(passage: str, known: str) -> float:
    """The penalty for numbers and coined names of a passage that the experiment does not have."""
    figures = 0.06 if sum(character.isdigit() for character in passage) > 3 else 0.0
    coined = [name for name in _COINED.findall(passage) if name.rstrip("s") not in known]
    return figures + 0.03 * min(2, len(coined))


def _needed(theme: Theme) -> float:
    if len(theme.forms) == 1:
        return MIN_SCORE_ON_WORD
    return MIN_SCORE if theme.weight >= STRONG_THEME else MIN_SCORE_ON_WEAK_PHRASE


def _affinity(theme: Theme, forms: set[str], whole: set[tuple[str, ...]]) -> float:
    """How well a statement covers a theme: all of its words in sequence, or its significant words only."""
    if theme.forms in whole:
        return theme.weight
    telling = [item for item in theme.forms if not is_generic(item)]
    if len(theme.forms) > 1 and telling and all(item in forms for item in telling):
        return 0.5 * theme.weight
    return 0.0


def choose(matches: Sequence[Match], limits: MatchLimits, *, wanted_papers: int) -> list[Match]:
    """The best matches within the limits; a paper not cited yet takes precedence."""
    taken = _Taken()
    chosen: list[Match] = []
    rest = sorted(matches, key=lambda match: (-match.score, match.fact, match.quotable.source.evidence.id))
    while rest and len(chosen) < limits.section:
        best = max(rest, key=lambda match: _value(match, taken, wanted_papers))
        _take(best, taken)
        chosen.append(best)
        rest = [match for match in rest if match is not best and _allowed(match, limits, taken)]
    return sorted(chosen, key=lambda match: (match.fact, -match.score))


def _value(match: Match, taken: _Taken, wanted_papers: int) -> float:
    key = match.quotable.source.paper.key
    repeated = 0.0
    if taken.papers[key]:
        repeated = 0.15 if len(taken.papers) < wanted_papers else 0.06
    crowded = 0.04 * taken.facts[match.fact] + 0.03 * taken.themes[match.theme.forms]
    return match.score - repeated - crowded


def _allowed(match: Match, limits: MatchLimits, taken: _Taken) -> bool:
    source = match.quotable.source
    return (
        taken.facts[match.fact] < limits.fact
        and taken.papers[source.paper.key] < limits.paper
        and taken.themes[match.theme.forms] < limits.theme
        and source.evidence.id not in taken.evidence
        and match.quotable.passage.text not in taken.texts
    )


def _take(match: Match, taken: _Taken) -> None:
    source = match.quotable.source
    taken.facts[match.fact] += 1
    taken.papers[source.paper.key] += 1
    taken.themes[match.theme.forms] += 1
    taken.evidence.add(source.evidence.id)
    taken.texts.add(match.quotable.passage.text)
