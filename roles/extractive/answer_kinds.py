"""Decides without a chat model whether a sentence may answer a question: by its words and the kind of its answer.

A question asks for a number, a name, a definition, a yes or no, a reason, or for something without a form of its own
("how"). A sentence that has the words of the question and something of the requested kind may be called its answer;
any other passage is only possibly relevant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from ...documents import Paper
from ...text.question_subject import AUXILIARIES, is_verb
from ...text.words import is_generic, is_stop, stem, words_of
from .attributable_sentences import tells_of_doing
from .quotable_sentences import PROCEDURE

AnswerKind = Literal["number", "name", "definition", "yes-no", "reason", "open"]

ANSWERS: Final = 4.0  # log-odds gained by a sentence with the question's words and the kind of its answer

_MEASURES: Final = (
    r"accuracy|amount|area|auc|aupr|auroc|average|coefficient|correlation|cost|count|dose|duration|error|fraction|frequency"
    r"|hazard|length|mean|median|number|odds|percent\w*|power|precision|price|probability|proportion|rate|ratio|recall"
    r"|score|sensitivity|share|size|specificity|speed|temperature|threshold|total|value|variance|year|p-value|f1"
)
_NUMBER_ASKED = re.compile(  # bounded: 4,000 characters
    r"\bhow\s+(?:many|much|often|long|large|big|small|far|fast|old|high|low|accurate(?:ly)?|strong(?:ly)?|frequent(?:ly)?)\b"
    rf"|\b(?:what|which)\s+(?:(?:is|was|are|were)\s+)?(?:the\s+|an?\s+)?(?:[\w-]+\s+){{0,3}}?(?:{_MEASURES})\b"
    r"|^when\b",
    re.IGNORECASE,
)
_DEFINITION_ASKED = re.compile(  # bounded: 4,000 characters
    r"^(?:what\s+(?:is|are|does)|define|what's)\s+(?P<term>.+?)(?:\s+mean)?[?.!\s]*$", re.IGNORECASE
)
_NAME_ASKED = re.compile(
    r"^(?:(?:\w+\s)?(?:which|what|whose)\s+(?!is\b|are\b|was\b|were\b|does\b|do\b|did\b)|who\b|where\b)", re.IGNORECASE
)
_REASON_ASKED = re.compile(r"^(?:why|for what reason|what (?:causes?|explains?))\b", re.IGNORECASE)
_REASON = re.compile(
    r"\b(?:because|since|due to|owing to|as a result|therefore|thus|hence|so that|reasons?|causes?d?|explain\w*"
    r"|result\w* (?:in|from)|lead\w* to|led to|attribut\w+|driv\w+ by|stems? from|aris\w+ from|makes? it"
    r"|in order to|to avoid|to (?:account|correct) for)\b",
    re.IGNORECASE,
)
# How a question names a work: "in the study of lynx", "in Musmeci et al.", "In Lee 2020, ".
_OF_WHOM = re.compile(
    r"(?:\b(?:in|of|by|according to)\s+(?:the\s+)?(?:[\w-]+\s+){0,3}?(?:study|paper|work|article|review|platform)\b"
    r"(?:\s+(?:of|by|on)\s.*)?"
    r"|\b(?:in|by)\s+[A-Z][\w-]+(?:\s+(?:et al\.?|and \w+))?(?:\s+\(?\d{4}\)?)?,?)\s*\??$",
)
_MOST_DEFINED: Final = 9  # words of a term to be defined
_NUMBER = re.compile(
    r"(?<![\w.])[-+−]?\d[\d,.]*(?:\s?%)?(?![\w])"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|million|half"
    r"|twice|double|third|quarter|dozen)\b"
)
# "X is a ...", "X (short for ...) are networks", "the X sketching technique, a derivative of", "X refers to".
_DEFINES: Final = (
    r"\w{0,2}(?:\s*\([^()]{0,120}\))?(?:,\s+an?\s|\s+\w+(?:\s\w+)?,\s+an?\s|(?:\s+(?:algorithms?|methods?|techniques?))?\s+"
    r"(?:(?:is|was)\s+(?:an?|the|one|defined)\s|(?:are|were)\s+(?!not\b|used\b|being\b|shown\b|also\b|still\b|\w+ly\b|\w+ful\b"
    r"|\w+ed\b)|means?\s|refers?\s+to|denotes?\s|stands?\s+for|describes?\s|extends?\s|consists?\s+of))"
)
_OPENS: Final = r"(?:^|[,;(]\s|\b(?:the|an?|that|we \w+|we first \w+)\s)"
_NAMED = re.compile(r"(?<![.!?]\s)(?<!^)\b(?:[A-Z][\w-]*|\w+[A-Z]\w*)|`[^`]+`|\b\w+\d\w*\b")
_OF_THE_QUESTION: Final = frozenset(
    map(
        stem,
        "study studies paper papers author authors et al according find found say report reach take require".split(),
    )
)
_ENOUGH: Final = 0.6  # of the question's own words
_ENOUGH_FOR_YES: Final = 0.75  # when the words are the only criterion
_FEWEST: Final = 2  # words of a question; with fewer it cannot be decided
_MAY_BE_MISSED: Final = 4  # one in so many words of the subject may be missing
_LIKE: Final = 5  # letters that related words share at least: "analyse" and "analysis"
_LONGER: Final = 3
_ADJECTIVES: Final = frozenset("different autosomal new human total such other unique distinct".split())
# Words that an answer need not contain: "82% were right" gives a percentage, "in 1990" a year.
_UNSAID: Final = frozenset(
    "amount average fraction number percent percentage proportion share total value year".split()
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for: its kind, and the stems of its significant words.

    `subject` are those that are neither names nor common to papers of every field, `of` what a requested number counts,
    and `term` the term to be defined.
    """

    kind: AnswerKind
    words: frozenset[str]
    subject: frozenset[str]
    of: frozenset[str] = frozenset()
    term: str = ""


@lru_cache(maxsize=64)
def asked_for(question: str) -> Asked:
    """What a question asks for, by its form."""
    plain = " ".join(question.split())
    asked = _OF_WHOM.sub("", plain) or plain
    telling = [word for word in words_of(asked) if not is_stop(word) and stem(word.surface) not in _OF_THE_QUESTION]
    words = frozenset(stem(word.surface) for word in telling) - {stem(name) for name in _UNSAID}
    subject = words & {stem(word.surface) for word in telling if word.surface.islower() and not is_generic(word.form)}
    number = _NUMBER_ASKED.search(asked)
    if number:
        return Asked("number", words, subject, of=_counted(asked, number))
    defined = _DEFINITION_ASKED.match(asked)
    if defined and len(defined["term"].split()) <= _MOST_DEFINED:
        return Asked("definition", words, subject, term=_term(defined["term"]))
    if _REASON_ASKED.match(asked):
        return Asked("reason", words, subject)
    if _NAME_ASKED.match(asked):
        return Asked("name", words, subject)
    yes_no = asked.split()[:1] and asked.split()[0].lower() in AUXILIARIES
    return Asked("yes-no" if yes_no else "open", words, subject)


def answers(question: str, sentence: str, paper: Paper) -> bool:
    """True when a sentence of a paper has the words of the question and something of the kind it asks for."""
    asked = asked_for(question)
    return _has_words(asked, sentence, paper) and _has_kind(asked, question, sentence)


def _has_words(asked: Asked, sentence: str, paper: Paper) -> bool:
    """True when a sentence has enough of the question's words; words that name its paper do not count."""
    if asked.kind == "definition":
        return True  # the term has to be what the sentence defines
    said = frozenset(_stems(sentence))
    of_paper = frozenset(_stems(" ".join([paper.title, *paper.authors, *paper.family_names])))
    missed = frozenset(word for word in asked.words - said if not any(_alike(word, other) for other in said))
    lacking = missed - of_paper
    sought = asked.words - (missed & of_paper)
    share = _ENOUGH_FOR_YES if asked.kind in ("yes-no", "open") else _ENOUGH
    enough = len(asked.words) >= _FEWEST and bool(sought) and len(sought - lacking) >= share * len(sought)
    return enough and len(lacking & asked.subject) <= len(asked.subject) // _MAY_BE_MISSED


def _alike(one: str, other: str) -> bool:
    shorter, longer = sorted((len(one), len(other)))
    common = max(_LIKE, shorter - 1)
    return shorter >= _LIKE and longer - shorter <= _LONGER and one[:common] == other[:common]


def _has_kind(asked: Asked, question: str, sentence: str) -> bool:
    match asked.kind:
        case "number":
            said = frozenset(_stems(sentence))
            named = all(any(word == other or _alike(word, other) for other in said) for word in asked.of)
            return named and bool(_NUMBER.search(_without(question, sentence)))
        case "definition":
            term = r"\s+".join(map(re.escape, asked.term.split()))
            return bool(term) and bool(re.search(rf"{_OPENS}{term}{_DEFINES}", sentence, re.IGNORECASE))
        case "name":
            return bool(_NAMED.search(_without(question, sentence)))
        case "reason":
            return bool(_REASON.search(sentence))
        case "yes-no":
            return bool(PROCEDURE.search(question)) or not (PROCEDURE.search(sentence) or tells_of_doing(sentence))
        case "open":
            return True


def _without(question: str, sentence: str) -> str:
    """The sentence without names and numbers that the question itself contains."""
    given = {word.strip("?.,;:()'\"").lower() for word in question.split()}
    return " ".join(word for word in sentence.split() if word.strip("?.,;:()'\"").lower() not in given)


def _term(words: str) -> str:
    """The term to be defined: "design effect" in "the design effect of a trial"."""
    head = re.split(r" (?:of|in|for|on) ", re.sub(r"^(?:an?|the) ", "", words, flags=re.IGNORECASE))[0]
    head = re.sub(r" (?:algorithms?|methods?|techniques?)$", "", head)
    return head[:-1] if head.endswith("s") and not head.endswith("ss") else head


def _counted(question: str, asked: re.Match[str]) -> frozenset[str]:
    """What the number counts or measures: "patients" in "how many patients", "AUROC" in "what AUROC"."""
    if re.match(r"how (?:many|much)", asked[0], re.IGNORECASE):
        after = [word.surface for word in words_of(question[asked.end() :]) if not is_stop(word)]
        noun = next((word for word in after if not word[0].isupper() and word.lower() not in _ADJECTIVES), "")
        return frozenset({stem(noun)} if noun and not is_verb(noun.lower()) else ())
    named = [word.surface for word in words_of(asked[0]) if re.fullmatch(_MEASURES, word.surface, re.IGNORECASE)]
    return frozenset(stem(name) for name in named[-1:] if name.lower() not in _UNSAID)


def _stems(text: str) -> Iterable[str]:
    return [stem(word.surface) for word in words_of(text) if not is_stop(word)]
