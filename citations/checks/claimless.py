"""Sentences that need no citation of their own, since they claim nothing of the matter: leads, transitions, questions.

Each is recognised by what it may hold, not by what it may not: a sentence with a word of the field in it that says
something is left to the checks.
"""

from __future__ import annotations

import re
from typing import Final

from ...text.question_subject import AUXILIARIES, is_verb
from ..markers import CitedSentence
from ..spans import line_start

_LEAD: Final = re.compile(
    r"(?P<mark>\*\*|__|\*|_)(?P<words>(?:(?!\*|__|_\W)(?:[^\n\d]|(?<=\w)\d)){1,80})(?P=mark)[.:]?"
)
_LIST_MARK: Final = re.compile(r"[ \t]*(?:(?:[-*+>]|\d{1,3}[.)])[ \t]+)*")
_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_LONGEST_LEAD: Final = 8  # words
_QUESTIONS: Final = frozenset("how what when where which who why whether".split())
_ARTICLES: Final = frozenset("a an the its their".split())
_LINKS: Final = frozenset(
    "about across after against among and around as at before between beyond by during for from in inside into of on"
    " or over than that through to under upon versus vs which with within without".split()
)
_PAST: Final = frozenset("beat became fell found gave grew kept led lost made rose saw shrank won".split())
_PLURAL: Final = re.compile(r"[a-z-]{3,}[^sui]s")

# What a transition is made of: it counts points of the text itself and says that they come.
_COUNT: Final = "two three four five six seven several first second third fourth next last following".split()
_POINTS: Final = (
    "answer answers approach approaches argument arguments aspect aspects caveat caveats evidence family families"
    " finding findings group groups idea ideas issue issues kind kinds limit limitations limits line lines method"
    " methods part parts point points question questions reason reasons respect respects result results route routes"
    " side sides step steps strand strands theme themes thing things topic topics view views way ways"
).split()
_BETWEEN: Final = (
    "a also an and are as be bear bears below by can come comes concern concerns considered differ differs discussed"
    " distinguished emerge emerges fall falls first follow follows from grouped has have here in into is it main matter"
    " matters of on one out recur recurs relevant sorted stand stands taken that the their them then these they this"
    " those to turn"
).split()
_OF_A_TRANSITION: Final = frozenset([*_COUNT, *_POINTS, *_BETWEEN])
_COUNTS: Final = frozenset([*_COUNT, "these", "this"])
_OF_WORK: Final = re.compile(r"\b(lines?|strands?|groups?)\sof\s(?:work|research|evidence|argument|thought)\b")
_ANNOUNCES: Final = re.compile(
    r"\b(?:bears?\son|stands?\sout|emerges?|follows?|recurs?|matters?|falls?\sinto|concerns?|comes?\s(?:first|next|in)"
    r"|differs?\sin\s(?:\w+\s){1,2}(?:kinds|points|respects|ways)"
    r"|(?:is|are|be)\s(?:taken|considered|grouped|sorted|distinguished|discussed|relevant)"
    r"|ha(?:s|ve)\s(?:\w+\s){1,2}(?:parts|sides|steps))\b"
)
_LONGEST_TRANSITION: Final = 14  # words

_STRENGTH: Final = re.compile(
    r"\W*(?:(?:(?:all|most|much)\sof\s)?(?:this|these|it|that|what\sfollows)|(?:all|both|these|the)\s(?:findings|results"
    r"|statements|points|numbers)|the\sevidence)\s(?:here\s|above\s|all\s)?(?:comes?|rests?|stems?|relies|rely|is|are)\s"
    r"(?:only\s)?(?:from|on|of)\s(?:only\s)?(?:a\ssingle|one|the\ssame|two)\s(?:papers?|stud(?:y|ies)|sources?|reviews?)"
    r"(?:,?\s(?:and\s)?so\s(?:[\w-]+\s){0,6}[\w-]+)?\W*",
    re.IGNORECASE,
)

# The object of a question: whatever it speaks of, nothing is said of that yet. It ends where a clause states something.
_ASKED: Final = re.compile(
    r"\b(?:(?:we|it)\s(?:[\w-]+\s){0,2}?(?:asks?|asked|examined?|investigated?|test(?:ed)?|studied|study|address(?:ed)?"
    r"|assess(?:ed)?|determined?)|questions?:|(?:open|unclear|unknown|untested|not\s(?:yet\s)?(?:known|clear|settled)|remains?\sto\sbe\s(?:asked|seen|shown|tested)))"
    r"\s(?:how|why|whether|which|what|when|where|if|to\swhat\sextent)\b[^;]*?"
    r"(?=;|,\sand\s(?!how|why|whether|which|what|when|where|if|to\swhat)|,?\s(?:although|though|but|while|whereas|since|because|as|however)\s|$)",
    re.IGNORECASE,
)


def is_lead_in(text: str, sentence: CitedSentence, following: CitedSentence | None) -> bool:
    """Whether a sentence is a few bold words that begin a line, name what follows, and claim nothing themselves.

    What follows in the same line has to cite.
    """
    begin = line_start(text, sentence.start)
    found = _LEAD.fullmatch(sentence.text.strip())
    mark = _LIST_MARK.match(text, begin, sentence.end)
    first = mark is not None and mark.end() >= sentence.start
    if not found or not first or following is None or not following.ids or "\n" in text[sentence.end : following.start]:
        return False
    words = [word.lower() for word in _WORD.findall(found["words"])]
    return 0 < len(words) <= _LONGEST_LEAD and (words[0] in _QUESTIONS or not _holds_verb(words))


def is_transition(sentence: CitedSentence, following: CitedSentence | None) -> bool:
    """Whether a sentence says that so many points come, without a word on any matter: "Three lines of work bear on
    this."; something has to come."""
    plain = _OF_WORK.sub(r"\1", sentence.text.lower())
    words = re.findall(r"[\w%]+", plain)
    return (
        following is not None
        and len(words) <= _LONGEST_TRANSITION
        and _OF_A_TRANSITION.issuperset(words)
        and not _COUNTS.isdisjoint(words)
        and bool(_ANNOUNCES.search(plain))
    )


def tells_strength(sentence: CitedSentence) -> bool:
    """Whether a sentence only tells from how many papers something comes: that can be seen in the markers."""
    return _STRENGTH.fullmatch(sentence.text) is not None


def question_spans(words: str) -> list[tuple[int, int]]:
    """Spans of what a text asks, tests, or calls open: "how instability can be told apart ..."."""
    return [match.span() for match in _ASKED.finditer(words)]


def _holds_verb(words: list[str]) -> bool:
    """Whether a lead states something: its first word may be an imperative or a participle, and its last a noun."""
    return any(
        word in AUXILIARIES
        or word in _PAST
        or (place < len(words) - 1 and (is_verb(word) or _takes_object(word, words[place + 1])))
        for place, word in enumerate(words)
        if place
    )


def _takes_object(word: str, following: str) -> bool:
    """Whether a word looks like a verb by what stands behind it: "impairs memory", "halve the risk"."""
    if following in _ARTICLES:
        return word not in _LINKS
    return bool(_PLURAL.fullmatch(word)) and following not in _LINKS
