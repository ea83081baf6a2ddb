"""What the author wants of every text, as lines of memory: which of them can be checked, and which sentences differ.

A line is what a person would say: "participants, not subjects", "British spelling", "never cite KEY", or any other wish
or fact. The first two are checked in a draft, the third is a ban; the rest is only given to planner and writer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from ...text.words import read_rules
from ..markers import quoted_spans
from .findings import Finding

PreferenceKind = Literal["ban", "term", "spelling", "note"]
LONGEST: Final = 300  # characters of a line
_WORDS: Final = 4  # of a term
_BAN: Final = re.compile(r"(?:please )?(?:never|do not|don't) cite @?([^\s,;]{1,200}?)\.?", re.IGNORECASE)
_SPELLING: Final = re.compile(r"(?:use )?(british|american)(?: (?:spelling|english))?\.?", re.IGNORECASE)
_TERM: Final = re.compile(
    r"(?:(?:use|write|say|prefer) )?([^,;.:]{2,60}?),? (?:not|instead of|rather than) ([^,;.:]{2,60}?)\.?",
    re.IGNORECASE,
)
_STEMS: Final = tuple((*row.split(":", 2), "")[:3] for row in read_rules(__file__, "spellings")["stems"].split())
_BRITISH: Final = {british: american for british, american, _ in _STEMS}
_AMERICAN: Final = {american: british for british, american, _ in _STEMS}


def _stems(place: int) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])({'|'.join(row[place] + row[2] for row in _STEMS)})\w*")


_SPELLED: Final = {"british": (_stems(1), _AMERICAN), "american": (_stems(0), _BRITISH)}


@dataclass(frozen=True, slots=True)
class Preferences:
    """The lines in a form that can be checked: `terms` as (wanted, unwanted), `notes` for planner and writer."""

    banned: frozenset[str] = frozenset()
    terms: tuple[tuple[str, str], ...] = ()
    spelling: str = ""
    notes: tuple[str, ...] = ()


def preference_kind(line: str) -> PreferenceKind:
    """Whether a line is a ban, a term or a spelling, which are checked, or any other note."""
    read = read_preferences((line,))
    return "ban" if read.banned else "term" if read.terms else "spelling" if read.spelling else "note"


@lru_cache(64)
def read_preferences(lines: tuple[str, ...]) -> Preferences:
    """Read the preferences from lines; if they ask for both spellings, the first counts."""
    banned, terms, spelling, notes = set[str](), list[tuple[str, str]](), "", list[str]()
    for line in lines:
        said = " ".join(line[:LONGEST].replace('"', "").replace("“", "").replace("”", "").split())
        if ban := _BAN.fullmatch(said):
            banned.add(ban[1])
            continue
        notes.append(line)
        if spelled := _SPELLING.fullmatch(said):
            spelling = spelling or spelled[1].lower()
        elif (term := _TERM.fullmatch(said)) and max(len(part.split()) for part in term.groups()) <= _WORDS:
            terms.append((term[1].strip(), term[2].strip()))
    return Preferences(frozenset(banned), tuple(terms), spelling, tuple(notes))


def preference_findings(text: str, lines: Sequence[str]) -> list[Finding]:
    """A finding for each word outside quotations that the author prefers to write differently."""
    preferences = read_preferences(tuple(lines))
    found: list[tuple[int, int, str]] = []
    for wanted, unwanted in preferences.terms:
        for match in re.finditer(rf"(?<![\w-]){re.escape(unwanted)}(?![\w-])", text, re.IGNORECASE):
            found.append((*match.span(), wanted))
    if preferences.spelling:
        pattern, others = _SPELLED[preferences.spelling]
        for match in pattern.finditer(text):
            found.append((*match.span(), others[match[1]] + match[0][len(match[1]) :]))
    quoted = quoted_spans(text) if found else []
    return [
        Finding("not-as-preferred", f'"{text[start:end]}" is "{wanted}" by the author\'s preferences.', (start, end))
        for start, end, wanted in found
        if not any(first <= start and end <= last for first, last in quoted)
    ]


def spelling_of(old: str, new: str) -> str:
    """The spelling, "british" or "american", that turns `old` into `new`; "" for any other change."""
    for name, (pattern, others) in _SPELLED.items():
        match = pattern.fullmatch(old)
        if match and others[match[1]] + old[len(match[1]) :] == new:
            return name
    return ""
