"""Rewrites follow-up questions without a chat model: carries over the subject of the last question.

Pronouns are replaced by that subject, a fragment ("and in 2020?", "why?") is joined to the last question, and other
dependent questions are appended to it; a self-contained question is returned unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...text.wordings import AUXILIARIES, find_subject, is_participle, is_verb
from ...text.words import STOP_WORDS, is_generic, is_stop, read_rules, split_words
from ..protocols import Turn

_RULES = read_rules(__file__, "follow_up_rules")
_PRONOUN, _WHOLE, _THIS_THING, _ASKED_OF_THAT, _THE_THING, _EXPLETIVE = (
    re.compile(_RULES["patterns"][name], re.IGNORECASE)
    for name in ("pronoun", "whole", "this_thing", "asked_of_that", "the_thing", "expletive")
)
_RELATIVE_THOSE, _OPENING, _BREAK, _PREPOSITION, _ASKS, _ADDED = (
    re.compile(_RULES["patterns"][name], re.IGNORECASE)
    for name in ("relative_those", "opening", "break", "preposition", "asks", "added")
)
_COURTESY, _INTERROGATIVES = (frozenset(_RULES["words"][name].split()) for name in ("courtesy", "interrogatives"))
_LATIN = re.compile(r"[A-Za-z]")
_QUESTION_END = " ?!."
# Additions from earlier follow-ups are dropped, or questions would grow from turn to turn.
_FIRST_QUESTION = re.compile(r"^([^?]+\?)\s+\S.*$", re.DOTALL)
_SHORT = 3  # words of a subject that can take 's


async def rewrite_question(question: str, earlier: Sequence[Turn]) -> str:
    """Implements `QuestionRewriter` by rules for English; a question in another language is returned unchanged."""
    return condense_question(question, earlier)


def is_remark(text: str) -> bool:
    """Whether a text asks for nothing, such as "Thank you!" or "Ok, that was helpful."."""
    said = [word.surface.lower() for word in split_words(text)]
    other = [word for word in said if word not in _COURTESY]
    empty = not re.search(r"[\d?]", text) and _INTERROGATIVES.isdisjoint(said)
    return len(other) < len(said) and empty and all(word in STOP_WORDS for word in other)


def condense_question(question: str, earlier: Sequence[Turn]) -> str:
    """Complete a question from earlier turns, by the subject of the last complete question; remarks stay unchanged."""
    earlier = [turn for turn in earlier if not is_remark(turn["question"])]
    if not earlier or is_remark(question):
        return question
    topics = [turn["question"] for turn in earlier if turn.get("asked", "") in ("", turn["question"])]
    return complete_question(question, earlier[-1]["question"], topics[-1] if topics else None)


def complete_question(question: str, last: str, topic: str | None = None) -> str:
    """Complete a question from the `last` one, pronouns from `topic` if given; unchanged if self-contained."""
    last = _ADDED.sub("", _FIRST_QUESTION.sub(r"\1", last.strip()))
    asked = question.strip()
    if not _LATIN.search(asked):
        return question
    bare = _OPENING.sub("", asked)
    if (pronoun := _pronoun_in(asked)) is not None:
        return _replace_pronoun(asked, pronoun, last if topic is None else topic)
    if _points_back(asked):
        return f"{last} {asked}"
    if not _is_complete(bare):
        return f"{last} {asked}" if _is_command(bare) else _join_fragment(bare, last)
    if bare != asked and asked.lower().startswith(("what about", "how about", "and what about")):
        return _join_fragment(bare, last)
    return question


def _pronoun_in(asked: str) -> re.Match[str] | None:
    spoken = {place for within in _EXPLETIVE.finditer(asked) for place in range(*within.span())}
    for match in _PRONOUN.finditer(asked):
        relative = _RELATIVE_THOSE.match(asked, match.start())
        if match.start() not in spoken and not relative and not _said_before(asked[: match.start()]):
            return match
    return None


def _said_before(head: str) -> bool:
    """Whether a separate clause before a pronoun names what the pronoun refers to."""
    breaks = list(_BREAK.finditer(head))
    clause = head[: breaks[-1].start()] if breaks else ""
    return any(not is_stop(word) and not is_generic(word.form) for word in split_words(clause))


def _points_back(asked: str) -> bool:
    whole = any(not _said_before(asked[: match.start()]) for match in _WHOLE.finditer(asked))
    generic = any(is_generic(match[1].lower()) for match in _THIS_THING.finditer(asked))
    return whole or generic or _ASKED_OF_THAT.match(asked) is not None


def _is_complete(bare: str) -> bool:
    """Whether the words form a question: a specific subject, and something asked about it."""
    telling = [word for word in split_words(bare) if not is_stop(word)]
    own = [word for word in telling if not is_generic(word.form) and not is_verb(word.surface.lower())]
    own = own[1:] if own and own[0] is telling[0] and _is_command(bare) else own
    the_thing = _THE_THING.search(bare)
    if not own or (len(own) == 1 and the_thing and is_generic(the_thing[1].lower())):
        return False
    finite = any(word.lower().strip(_QUESTION_END) in AUXILIARIES for word in bare.split())
    return finite or _is_command(bare) or len(telling) >= 4 or (len(telling) >= 3 and _ASKS.match(bare) is not None)


def _is_command(bare: str) -> bool:
    """Whether it begins with a verb: "Give an example", "Explain overfitting"."""
    first = bare.split(maxsplit=1)[0].lower().strip(_QUESTION_END) if bare else ""
    return is_verb(first) or first in ("list", "name", "explain", "summarize", "compare", "elaborate")


def _replace_pronoun(asked: str, pronoun: re.Match[str], last: str) -> str:
    subject, said = find_subject(last), pronoun[0].lower()
    start, end = pronoun.span()
    noun = re.match(r"\s+(\w+)", asked[end:])
    phrase = subject.other if said == "the latter" else subject.phrase
    if said in ("its", "their", "theirs") and phrase:
        if noun and said != "theirs" and len(f"{phrase}'s".split()) > _SHORT:
            return f"{asked[:start]}the {noun[1]} of {phrase}{asked[end + noun.end() :]}"
        phrase += "'" if phrase.endswith("s") else "'s"
    word = split_words(noun[1])[:1] if noun and said in ("these", "those", "such") else []
    if noun and word and not is_stop(word[0]) and not is_participle(noun[1]):
        if not is_generic(word[0].form) and word[0].form not in {other.form for other in split_words(phrase)}:
            phrase = ""
        end += noun.end()
    return f"{asked[:start]}{phrase}{asked[end:]}" if phrase else f"{last.strip()} {asked}"


def _join_fragment(fragment: str, last: str) -> str:
    body = last.strip().rstrip(_QUESTION_END)
    part = fragment.strip().rstrip(_QUESTION_END)
    preposition = _PREPOSITION.match(part)
    if preposition and not _ASKS.search(part) and not re.search(rf"\b{preposition[1]}\b", body, re.IGNORECASE):
        return f"{body} {part}?"
    first = split_words(part)[:1]
    lowered = part[:1].lower() + part[1:] if first and is_stop(first[0]) else part
    return f"{body}, and {lowered}?"
