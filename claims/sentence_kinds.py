"""Decides what an uncited sentence is: "own" or "other" when in doubt, since false alarms make a check useless."""

from __future__ import annotations

import re
from typing import Final

from ..citations.checks.citation_coverage import reports_others_work
from ..documents.categories import standard_section
from ..documents.types import Category
from ..roles.protocols import UncitedKind
from ..text.words import one_of, read_rules, split_words

_RULES: Final = read_rules(__file__, "sentence_rules")["uncited"]
_OWN, _OPINION, _MEASURED, _FIELD = (
    one_of(_RULES[name], re.IGNORECASE) for name in ("own", "opinion", "measured", "field")
)
_THANKS: Final = re.compile(_RULES["thanks"], re.IGNORECASE)
# Signs that a sentence rests on others' work; none of them decides alone. A logistic regression on the sentences of 42
# papers, with and without a citation, kept these few of the words of every field (bench/mutated_papers.py).
_WEIGHTS: Final = {
    **{"been": 0.5, "use": 0.4, "model": 0.35, "recent": 0.2, "as": 0.15, "have": 0.15, "method": 0.15, "in": 0.1},
    **{"the": -0.45, "it": -0.4, "each": -0.4, "not": -0.35, "be": -0.1, "tabl": -0.1},
}
_ET_AL: Final = 1.4
_OF_SECTIONS: Final = {Category.INTRODUCTION: 0.9, Category.RELATED_WORK: 0.9, Category.ABSTRACT: -1.0}
_OF_NO_SECTION: Final = 0.15
_OF_LENGTH: Final = (-0.9, 0.5)  # of a short and of a long sentence
_READ: Final = 600  # characters
_SHORT, _LONG = 12, 25  # words
_ENOUGH: Final = 0.45
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|can|may|do|does|did|rose|fell|grew|found|led|made|became|showed|took|began|[a-z]{3,}(?:ed|es|s))\b"
)
_PAST: Final = re.compile(
    r"\b(?:was|were|had|did|rose|fell|grew|found|led|made|became|took|began|kept|lost|gave|[a-z]{3,30}ed)\b"
)
_PRESENT: Final = re.compile(r"\b(?:is|are|has|have|can|may|causes?|leads?|remains?|becomes?|shows?)\b")
_OF_ITSELF: Final = frozenset({Category.METHOD, Category.EVALUATION, Category.CONCLUSION, Category.ABSTRACT})
_FEWEST_WORDS: Final = 5


def uncited_kind(text: str, section: str) -> UncitedKind:
    """The kind of a sentence without a citation, in the section of this title."""
    words = text[:2_000]
    if len(words.split()) < _FEWEST_WORDS or not _VERB.search(words):
        return "opinion" if _OPINION.search(words) else "other"
    if _OPINION.search(words):
        return "opinion"
    if _OWN.search(words) or _THANKS.search(words):
        return "own"
    if reports_others_work(words):
        return "needs"
    # Such sections tell what was done and found; a statement about the world may stand there too.
    placed = standard_section(section)
    if placed in _OF_ITSELF and _PAST.search(words) and not _PRESENT.search(words):
        return "own"
    if _MEASURED.search(words) or _FIELD.search(words):
        return "needs"
    forms = [word.form for word in split_words(words[:_READ])]
    score = sum(_WEIGHTS.get(form, 0.0) for form in set(forms)) + _ET_AL * ("et al" in words[:_READ])
    score += _OF_SECTIONS.get(placed, 0.0) if placed else _OF_NO_SECTION
    score += _OF_LENGTH[0] if len(forms) < _SHORT else _OF_LENGTH[1] if len(forms) > _LONG else 0.0
    return "needs" if score >= _ENOUGH else "common"


def is_plainly_own(text: str) -> bool:
    """Whether no model need be asked what a sentence is: it speaks of its authors, their figures, or thanks."""
    return bool(_OWN.search(text[:2_000]) or _THANKS.search(text[:2_000]))
