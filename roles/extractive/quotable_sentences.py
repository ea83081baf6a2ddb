"""Selects sentences of a source that can be quoted because they make sense without their neighbours.

The rules were derived from bad quotes that careless selection takes from real papers: pointers to figures, plans,
sentences that depend on the previous one, half a citation, a line of a table. A passage is quoted whole or not at all,
so the words between the quotation marks are always a sentence of the source, without its closing citation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from ...text.sentences import sentence_spans
from ...text.words import read_rules

MIN_WORDS = 8
MAX_WORDS = 45
_FEWEST_LETTERS = 0.65  # of the words
_LONGEST_CITATION = 300  # characters, at the end of a sentence

_RULES: Final = read_rules(__file__, "quotable_rules")
_LEANING, _UNFIT, _ANNOUNCES = (re.compile(_RULES[name], re.VERBOSE) for name in ("leaning", "unfit", "announces"))
_PLAN, _VERB, _CAPTION, _EXISTS = (re.compile(_RULES[name]) for name in ("plan", "verb", "caption", "exists"))
_PROCEDURE, _AIMED, _REPORT = (re.compile(_RULES[name]) for name in ("procedure", "aimed", "report"))
_POINTER = (  # in brackets: harmless, unlike a sentence about a figure
    r"\((?:[Ss]ee (?:also )?)?(?:[Ss]uppl\w* )?(?:[Ff]igs?|[Ff]igures?|[Tt]ables?|[Ss]ections?|[Aa]ppendix|[Ss]uppl\w*)\b[^()]{0,60}\)"
)
_TRAILING_CITATIONS = re.compile(  # bounded: 300 characters
    rf"(?:\s*(?:{_POINTER}|\[(?:-?@|\d)[^\[\]]*\](?:\([^()\s]*\))?|\\\[\d[\d\s,;–-]*\\\]|\^\[?\d[\d,\s–-]*\]?\^|<sup>[^<]*</sup>))+(?=\.?$)"
)
_POINTERS = re.compile(rf"\s(?![^)@]{{0,80}}@){_POINTER}")  # a key would be quoted
_QUOTED = re.compile(r'(?<!\w)"([^"“”]{1,60})"(?!\w)')
_THE_SAME = re.compile(r"\bthe same\b")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
# A value or a comparison as reported in papers: "AUROC = 97.4%", "p \\< 0.001".
_VALUE = re.compile(r"(?<=[\w*])\s?\\?[=<>≤≥≈]\s?(?=[-−+]?\d)")

Genre = Literal["announcement", "procedure", "other"]


def genre_of(sentence: str) -> Genre:
    """What a sentence does in its paper: announces or defines something, says what was done, or something else."""
    if _ANNOUNCES.search(sentence):
        return "announcement"
    done = _AIMED.search(sentence) or (_PROCEDURE.search(sentence) and not _REPORT.search(sentence))
    return "procedure" if done else "other"


@dataclass(frozen=True, slots=True)
class QuotablePassage:
    """A quotable span of a chunk: `chunk.text[start:end] == text`, a sentence without its closing citation."""

    text: str
    start: int
    end: int


def quotable_passages(chunk_text: str) -> list[QuotablePassage]:
    """The quotable sentences of a chunk, in order."""
    passages = []
    for start, end in sentence_spans(chunk_text):
        body = chunk_text[start:end].rstrip()
        if body.startswith("**") and body.endswith("**"):  # a statement that its authors set in bold
            body = body[2:-2]
            start += 2
        trailing = _TRAILING_CITATIONS.search(body, max(0, len(body) - _LONGEST_CITATION))
        if trailing:
            body = body[: trailing.start()]
        elif body.endswith("."):
            body = body[:-1]
        else:
            continue
        body = body.rstrip(" .")
        if "\n\n" not in body and is_quotable(" ".join(body.split())):
            passages.append(QuotablePassage(body, start, start + len(body)))
    return passages


def is_quotable(sentence: str) -> bool:
    """True when a sentence (on one line, without its full stop) says something by itself, out of its paper.

    Authors may say what they did and found, and give values; a sentence must not depend on its neighbours.
    """
    plain = _without_values(sentence)
    words = plain.split()
    if not MIN_WORDS <= len(words) <= MAX_WORDS or not plain[0].isupper():
        return False
    if any(rule.match(plain) for rule in (_LEANING, _CAPTION)) or _UNFIT.search(plain) or _PLAN.search(plain):
        return False
    if plain.count("(") != plain.count(")") or plain.count("*") % 2 or plain.count("_") % 2:
        return False
    letters = _WORD.findall(plain)
    return len(letters) >= _FEWEST_LETTERS * len(words) and bool(_VERB.search(" ".join(words[1:])))


def _without_values(sentence: str) -> str:
    """Remove acceptable elements: signs before values, quoted words, openings such as "All", "(Figure 2)"."""
    plain = _THE_SAME.sub("the", _QUOTED.sub(r"\1", _VALUE.sub(" ", _POINTERS.sub("", sentence))))
    plain = " ".join((_EXISTS.sub("", plain, count=1) if _EXISTS.match(plain) else plain).split())
    return plain[:1].upper() + plain[1:] if sentence[:1].isupper() else plain
