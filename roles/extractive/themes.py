"""The themes of an experiment: phrases that it shares with the sources.

A theme is the reason for matching a source with a statement, and the words that name the match. A phrase of two or
three words counts when the sources also use it as a phrase (which excludes chance neighbours such as "learning node");
a single word counts when it is not generic and the experiment uses it in more than one field.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...experiment import Experiment
from ...text.words import Word, form_of, is_generic, is_stop, words_of

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
# Phrases that end in one of these are too generic ("edge types", "expression values").
_CONTAINERS = frozenset(
    form_of(word)
    for word in """type pair value count number level set kind group class sample size change problem method
    report reports study time year choice""".split()
)
# A single word is a theme when it reads as a noun ("On calibration, ..."): by its ending, or as an abbreviation.
_NOUN = re.compile(r"(?:tion|sion|ity|ment|ness|ism|sis|ance|ence|ancy|ency|ing|ics|ings)$|[A-Z].*[A-Z]")
_INSIDE = re.compile(r"(?<=[a-z0-9,;)] )[A-Z][\w-]+")
_SMALL = re.compile(r"(?<![\w-])[a-z][\w-]+")
_PLURAL = re.compile(r"[^s]s$")


@dataclass(frozen=True, slots=True)
class Theme:
    """A phrase by its word forms, as the experiment spells it; `weight` grows with its length and use."""

    forms: tuple[str, ...]
    label: str
    weight: float


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """How often the sources use each phrase, how often a phrase ends there, and which papers use each word.

    `nouns` are the spellings of single words that read as nouns, most frequent first.
    """

    counts: Counter[tuple[str, ...]]
    bounded: Counter[tuple[str, ...]]
    papers: Counter[str]
    nouns: dict[str, Counter[str]]
    size: int


def phrases(words: Sequence[Word]) -> Iterable[tuple[int, int]]:
    """Index ranges of all runs of one to three adjacent words without a stop word."""
    for first in range(len(words)):
        for last in range(first, min(first + 3, len(words))):
            if is_stop(words[last]) or (last > first and not words[last].joined):
                break
            yield first, last + 1


def vocabulary(texts: Sequence[tuple[str, str]]) -> Vocabulary:
    """The phrases of the sources; `texts` are pairs of paper key and text."""
    counts: Counter[tuple[str, ...]] = Counter()
    bounded: Counter[tuple[str, ...]] = Counter()
    nouns: dict[str, Counter[str]] = {}
    seen: set[tuple[str, str]] = set()
    for key, text in texts:
        words = words_of(text)
        for first, stop in phrases(words):
            forms = tuple(word.form for word in words[first:stop])
            counts[forms] += 1
            bounded[forms] += _ends_phrase(words, stop)
        for word in words:
            seen.add((key, word.form))
            if _NOUN.search(word.surface):
                nouns.setdefault(word.form, Counter())[word.surface] += 1
    return Vocabulary(counts, bounded, Counter(item for _, item in seen), nouns, len({key for key, _ in texts}))


@dataclass(slots=True)
class _Use:
    fields: set[str]
    spellings: list[str]
    ends: int = 0  # how often a phrase of the experiment ends here


def experiment_themes(experiment: Experiment, known: Vocabulary) -> list[Theme]:
    """The themes of an experiment, highest weight first; ties keep the order of the text."""
    uses = _uses(experiment)
    themes = [
        Theme(forms, label, _weight(forms, use.fields))
        for forms, use in uses.items()
        if (label := _label(forms, use, known)) and _is_theme(forms, use, known)
    ]
    return sorted(themes, key=lambda theme: -theme.weight)


def _uses(experiment: Experiment) -> dict[tuple[str, ...], _Use]:
    uses: dict[tuple[str, ...], _Use] = {}
    names = _names(experiment)
    for path in PROSE_FIELDS:
        text = experiment.text_at(path)
        words = words_of(text)
        for first, stop in phrases(words):
            use = uses.setdefault(tuple(word.form for word in words[first:stop]), _Use(set(), []))
            use.fields.add(path)
            surface = text[words[first].start : words[stop - 1].end]
            use.spellings.append(surface if surface.split()[0] in names else spelled(surface))
            use.ends += _ends_phrase(words, stop)
    return uses


def _names(experiment: Experiment) -> set[str]:
    """Words that the experiment capitalises inside sentences and never writes in lower case: the user's names."""
    text = "\n".join(experiment.text_at(path) for path in PROSE_FIELDS[1:])  # titles capitalise what they like
    return set(_INSIDE.findall(text)) - {word.capitalize() for word in _SMALL.findall(text)}


def _ends_phrase(words: Sequence[Word], stop: int) -> bool:
    return stop == len(words) or not words[stop].joined or is_stop(words[stop])


def core_phrases(experiment: Experiment, known: Vocabulary) -> list[str]:
    """The recurring phrases of an experiment, highest weight first.

    A phrase that no source has used so far is worth a search only when it occurs in at least three fields.
    """
    kept: list[tuple[float, tuple[str, ...], str]] = []
    for forms, use in _uses(experiment).items():
        common = len(forms) > 1 and len(set(forms)) > 1 and use.ends and use.fields & _CORE_FIELDS
        if common and (len(use.fields) > 2 or (len(use.fields) > 1 and known.counts[forms])):
            kept.append((_weight(forms, use.fields), forms, use.spellings[0]))
    kept.sort(key=lambda item: -item[0])
    chosen: list[tuple[tuple[str, ...], str]] = []
    for _, forms, label in kept:
        if not any(set(forms) <= set(other) or set(other) <= set(forms) for other, _ in chosen):
            chosen.append((forms, label))
    return [label for _, label in chosen]


def _label(forms: tuple[str, ...], use: _Use, known: Vocabulary) -> str:
    """The experiment's spelling, in the plural if it occurs; a single word must read as a noun."""
    if len(forms) > 1:
        return next((spelling for spelling in use.spellings if spelling.endswith("s")), use.spellings[0])
    common = known.nouns.get(forms[0])
    from_sources = [spelled(common.most_common(1)[0][0])] if common else []
    named = [spelling for spelling in use.spellings if _NOUN.search(spelling)]
    # A plural must be the last word: "overfits" looks like one too.
    plural = [spelling for spelling in use.spellings if _PLURAL.search(spelling)]
    return next(iter([*named, *from_sources, *plural]), "")


def _is_theme(forms: tuple[str, ...], use: _Use, known: Vocabulary) -> bool:
    used = use.fields
    bare = all(is_generic(item) for item in forms)
    if not known.counts[forms] or not use.ends or forms[-1] in _CONTAINERS:
        return False
    if len(used) < 3 and known.bounded[forms] < _BOUNDED_SHARE * known.counts[forms]:
        return False
    if len(forms) > 1:
        # A phrase in one passage only may be chance, unless it recurs in the experiment.
        enough = 3 if bare else 1 if len(used) > 2 else 2
        belongs = bool(used & _CORE_FIELDS) or len(used) > 1
        return belongs and len(set(forms)) == len(forms) and known.counts[forms] >= enough
    widespread = known.papers[forms[0]] > max(3, 0.5 * known.size)
    return not bare and len(used) > 1 and bool(used & _CORE_FIELDS) and not widespread


def _weight(forms: tuple[str, ...], used: set[str]) -> float:
    specific = sum(0.4 if is_generic(item) else 1.0 for item in forms)
    return specific * (1 + 0.25 * min(len(used), 4)) * (1.2 if used & _CORE_FIELDS else 1.0)


def spelled(surface: str) -> str:
    """A phrase as spelled inside a sentence: lower case except for names and abbreviations."""
    words = surface.split()
    first = words[0]
    if len(first) > 1 and first[0].isupper() and first[1:].islower():
        words[0] = first.lower()
    return " ".join(words)


def themes_in(text: str, themes: Sequence[Theme]) -> list[Theme]:
    """The themes whose words occur in sequence in `text`; one inside a longer match is left out."""
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
