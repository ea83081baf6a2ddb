"""Reads wordings: the subject of a question; the results of a statement, their direction, whether it weighs sources.

A pronoun in the next question refers to the subject. No part-of-speech tagger is used: questions have few forms, and
the words that end a subject (an auxiliary, a common verb, a participle) are a closed list; if none occurs, the whole
remainder is the subject. A statement that matches none of the bounded patterns is taken to say nothing about results.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from .words import STOP_WORDS, is_generic, is_stop, one_of, read_rules, read_words, split_words

_WORDINGS: Final = read_rules(__file__, "wordings")
_SUBJECTS: Final = {name: frozenset(words.split()) for name, words in _WORDINGS["subjects"].items()}
BE: Final = _SUBJECTS["be"]
AUXILIARIES: Final = BE | _SUBJECTS["auxiliaries"]
_SHORT = 5  # maximum words of a place
# Base forms; their forms in -s, -ed and -ing count as well.
_VERBS = read_words("common_verbs")
_END = " ?!.,;:"
_OF_FORM = frozenset(_WORDINGS["questions"]["of_form"].split())
_WHAT_ABOUT = re.compile(r"^(?:and\s+)?(?:what|how) about\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a question: `phrase`, and `other`, the thing it is compared with (may be empty)."""

    phrase: str
    other: str = ""


def find_subject(question: str) -> Subject:
    """The subject of a self-contained question; its phrase is empty if none is recognised."""
    words = _WHAT_ABOUT.sub("", question.strip()).rstrip(_END).split()
    if words and len(words) < len(question.split()) - 1:
        return Subject(_trim(words))
    lowered = [word.lower().strip(",;:()") for word in words]
    if not words:
        return Subject("")
    place = next((index for index, word in enumerate(lowered) if word in AUXILIARIES), None)
    if lowered[0] in ("which", "what") and place != 1:
        return Subject(_with_verb_phrase(words, lowered, place))
    if place is None:  # an imperative, or a question without auxiliary
        start = 1 if is_verb(lowered[0]) or lowered[0] in STOP_WORDS else 0
        while start < len(words) and lowered[start] in STOP_WORDS - {"the"}:
            start += 1
        return Subject(_trim(words[start:]))
    start = place + 1
    if lowered[start : start + 1] and lowered[start] in _SUBJECTS["frame_verbs"] and lowered[start + 1 : start + 2]:
        start += 2 if lowered[start + 1] in _SUBJECTS["about"] else 1
    passive = lowered[place] in BE or any(word in BE for word in lowered[start:])
    end = _end_of_subject(lowered, start, passive=passive)
    if lowered[place] in _SUBJECTS["do"] and end == len(words) and end - start > 1 and not is_verb(lowered[-1]):
        return Subject("")  # an unknown verb, so the end of the subject is unknown
    phrase = _trim(words[start:end])
    first = next((index for index in range(end, len(words)) if lowered[index] in _SUBJECTS["places"]), len(words))
    last = next((index + 1 for index in range(first, len(words)) if words[index][-1] in ",;:"), len(words))
    if passive and last - first <= _SHORT:  # "in mice" for "estimated in mice"
        phrase = f"{phrase} {_trim(words[first:last])}".strip()
    comparing = (index for index in range(end, len(words) - 1) if lowered[index] in _SUBJECTS["comparing"])
    return Subject(phrase, _trim(words[next(comparing, len(words)) + 1 :]))


def _with_verb_phrase(words: list[str], lowered: list[str], place: int | None) -> str:
    """The subject with its verb phrase, as in "methods that detect variants" for "Which methods detect variants?"."""
    verb = next((index for index in range(1, len(words)) if is_verb(lowered[index])), None)
    if verb == 1 and lowered[0] == "what" and place != 2:  # "what limits do ..." asks for limits
        return _trim(words[2:])
    if place is not None and lowered[place] in AUXILIARIES - BE and lowered[0] in ("which", "what"):
        # "Which node types does Hetionet have?" is about Hetionet.
        return _trim(words[place + 1 : _end_of_subject(lowered, place + 1, passive=False)])
    split = place if place is not None else verb
    if split is None or split < 2:
        return _trim(words[1:])
    head = _trim(words[1:split])
    return f"{head if head.lower().startswith('the ') else f'the {head}'} that {' '.join(words[split:])}"


def _end_of_subject(lowered: list[str], start: int, *, passive: bool) -> int:
    """The end of the subject: at the participle of a passive or the verb of an active clause; never empty."""
    content_words = 0
    for index in range(start, len(lowered)):
        word = lowered[index]
        ends = (is_participle(word) or word in BE) if passive else word in _VERBS
        ends = ends and lowered[index - 1] not in _SUBJECTS["relative"]
        if content_words and ends:
            return index
        content_words += word not in STOP_WORDS
    return len(lowered)


def subject_words(feedback: str) -> str:
    """The words of feedback that name a subject: "node degree" in "say more about node degree", none in "shorter"."""
    subject_like = [word for word in split_words(feedback) if not is_stop(word) and not is_generic(word.form)]
    own = [word.surface for word in subject_like if not is_verb(word.surface.lower())]
    return " ".join(word for word in own if word.lower() not in _OF_FORM)


def is_verb(word: str) -> bool:
    """Whether a word is a form of a common verb."""
    return any(word.removesuffix(ending) in _VERBS for ending in ("", "s", "es", "d", "ed"))


def is_participle(word: str) -> bool:
    """Whether a word looks like a participle."""
    return word in _SUBJECTS["irregular"] or (word.endswith("ed") and len(word) > 4)


def _trim(words: list[str]) -> str:
    kept = words[1:] if words and words[0].lower() in ("there", "of") else words
    return " ".join(kept).strip(_END)


Direction = Literal["up", "down", "none", ""]

NAMED: Final = 2  # weight of a number or name
_NUMBER: Final = re.compile(r"\d{1,12}(?:[.,]\d{1,12}){0,3}")
_EXAMINED: Final = 1_000  # characters of a statement


def telling_words(text: str) -> dict[str, int]:
    """The numbers and uncommon words of a text, each with a weight (higher for numbers and names)."""
    words = [word for word in split_words(text) if not is_stop(word) and not is_generic(word.form)]
    weights = {word.form: 1 if word.surface.islower() else NAMED for word in words}
    return weights | dict.fromkeys(_NUMBER.findall(text), NAMED)


_MEASURES: Final = tuple(one_of(patterns, re.IGNORECASE) for patterns in _WORDINGS["measures"].values())
_NONE, _UP, _DOWN = (one_of(_WORDINGS["directions"][name], re.IGNORECASE) for name in ("none", "up", "down"))
_WEIGHS: Final = one_of(_WORDINGS["weighs"]["sources"], re.IGNORECASE)


def count_measures(text: str) -> int:
    """How much of a result a statement gives: an effect, the size of a group, a test (0-3)."""
    return sum(pattern.search(text[:_EXAMINED]) is not None for pattern in _MEASURES)


def direction(text: str) -> Direction:
    """Whether a statement says that something rose, fell, or showed no effect; empty for none or several of these."""
    text = text[:_EXAMINED]
    if _NONE.search(text):
        return "none"
    up, down = _UP.search(text) is not None, _DOWN.search(text) is not None
    return "" if up == down else "up" if up else "down"


_OUTCOME_REACH: Final = 45  # characters on either side of what rose, fell or did not differ


def outcome_words(text: str) -> set[str]:
    """The telling words around the phrase that says what rose, fell or did not differ; empty without such a phrase."""
    text = text[:_EXAMINED]
    pattern = {"none": _NONE, "up": _UP, "down": _DOWN}.get(direction(text))
    match = pattern.search(text) if pattern else None
    if match is None:
        return set()
    return set(telling_words(text[max(0, match.start() - _OUTCOME_REACH) : match.end() + _OUTCOME_REACH]))


def weighs_sources(sentence: str) -> bool:
    """Whether a sentence weighs, counts or compares what several sources say, rather than reporting one of them."""
    return _WEIGHS.search(sentence[:_EXAMINED]) is not None
