"""The themes of an experiment: phrases of its own that the sources speak of too.

A theme is the reason for which a source is brought beside a fact, and the words that the sentence names it by.
A phrase of two or three words counts when the sources use it as a phrase as well (which weeds out chance
neighbours such as "learning node"); a single word counts when it is no generic word and the experiment uses it
in more than one field.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from citeloom.experiment import Experiment
from citeloom.models.extractive.terms import Word, is_generic, is_stop, words_of

PROSE_FIELDS = (
    "paper_concept.title",
    "paper_concept.description",
    "paper_concept.open_questions",
    "hypothesis.description",
    "hypothesis.method_combination",
    "reasoning",
    "summary",
    "experimental_plan",
    "results",
)
_CORE_FIELDS = frozenset(PROSE_FIELDS[:5])
_BOUNDED_SHARE = 0.4
# A single word names a theme when it reads as a noun ("On calibration, ..."): by its ending, or as an abbreviation.
_NOUN = re.compile(r"(?:tion|sion|ity|ment|ness|ism|sis|ance|ence|ancy|ency|ing|ics|s)$|[A-Z].*[A-Z]")


@dataclass(frozen=True, slots=True)
class Theme:
    """A phrase by its forms, as the experiment spells it; `weight` grows with its length and use."""

    forms: tuple[str, ...]
    label: str
    weight: float


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """How often the sources use each phrase, how often it ends there as a phrase, and where each word occurs."""

    counts: Counter[tuple[str, ...]]
    bounded: Counter[tuple[str, ...]]
    papers: Counter[str]
    size: int


def phrases(words: Sequence[Word]) -> Iterable[tuple[int, int]]:
    """Index ranges of all runs of one to three neighbouring words that hold no stop word."""
    for first in range(len(words)):
        for last in range(first, min(first + 3, len(words))):
            if is_stop(words[last]) or (last > first and not words[last].joined):
                break
            yield first, last + 1


def vocabulary(texts: Sequence[tuple[str, str]]) -> Vocabulary:
    """Phrases of the sources; `texts` are pairs of paper key and text."""
    counts: Counter[tuple[str, ...]] = Counter()
    bounded: Counter[tuple[str, ...]] = Counter()
    seen: set[tuple[str, str]] = set()
    for key, text in texts:
        words = words_of(text)
        for first, stop in phrases(words):
            forms = tuple(word.form for word in words[first:stop])
            counts[forms] += 1
            if stop == len(words) or not words[stop].joined or is_stop(words[stop]):
                bounded[forms] += 1
        seen.update((key, word.form) for word in words)
    return Vocabulary(counts, bounded, Counter(item for _, item in seen), len({key for key, _ in texts}))


def experiment_themes(experiment: Experiment, known: Vocabulary) -> list[Theme]:
    """The themes of an experiment, weightiest first; ties keep the order of the text."""
    fields: dict[tuple[str, ...], set[str]] = {}
    labels: dict[tuple[str, ...], str] = {}
    for path in PROSE_FIELDS:
        text = experiment.text_at(path)
        words = words_of(text)
        for first, stop in phrases(words):
            forms = tuple(word.form for word in words[first:stop])
            fields.setdefault(forms, set()).add(path)
            labels.setdefault(forms, spelled(text[words[first].start : words[stop - 1].end]))
    themes = [
        Theme(forms, labels[forms], _weight(forms, used))
        for forms, used in fields.items()
        if _is_theme(forms, labels[forms], used, known)
    ]
    return sorted(themes, key=lambda theme: -theme.weight)


def _is_theme(forms: tuple[str, ...], label: str, used: set[str], known: Vocabulary) -> bool:
    bare = all(is_generic(item) for item in forms)
    if known.bounded[forms] < max(1, _BOUNDED_SHARE * known.counts[forms]):
        return False
    if len(forms) > 1:
        enough = 3 if bare else 2
        return len(set(forms)) == len(forms) and known.counts[forms] >= enough
    widespread = known.papers[forms[0]] > max(3, 0.7 * known.size)
    return not bare and len(used) > 1 and bool(used & _CORE_FIELDS) and not widespread and bool(_NOUN.search(label))


def _weight(forms: tuple[str, ...], used: set[str]) -> float:
    specific = sum(0.4 if is_generic(item) else 1.0 for item in forms)
    return specific * (1 + 0.25 * min(len(used), 4)) * (1.2 if used & _CORE_FIELDS else 1.0)


def spelled(surface: str) -> str:
    """A phrase as it stands inside a sentence: lower case but for names and abbreviations."""
    words = surface.split()
    first = words[0]
    if len(first) > 1 and first[0].isupper() and first[1:].islower():
        words[0] = first.lower()
    return " ".join(words)


def themes_in(text: str, themes: Sequence[Theme]) -> list[Theme]:
    """The themes whose words stand side by side in `text`; one inside a longer one that also does is left out."""
    words = words_of(text)
    present = {tuple(word.form for word in words[first:stop]) for first, stop in phrases(words)}
    found: list[Theme] = []
    for theme in sorted(themes, key=lambda item: (-len(item.forms), -item.weight)):
        covered = any(_inside(theme.forms, longer.forms) for longer in found)
        if theme.forms in present and not covered:
            found.append(theme)
    return sorted(found, key=lambda theme: -theme.weight)


def _inside(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    return any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1))
