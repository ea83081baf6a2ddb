"""Patterns of author-year citations in any script that has letters.

They are separate from the detector, which only needs the groups `authors` and perhaps `year` of a match.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ...documents import Paper
from ...documents.paper_names import family_name

_PARTICLE = (
    r"(?:van|von|der|den|de|del|della|di|da|dos|du|la|le|ter|ten|el|al|bin|ibn|zu|af|y"
    r"|Van|Von|De|Der|Den|Di|Da|Du|La|Le|El|Al)"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that begin a sentence or phrase before a name but are never names themselves.
_LEADING = _words(
    "a according after all although also an and are as at based because before both but by compared "
    "consistent contrary despite does during each e.g even extending finally first following for from "
    "given hence here how however i.e if in indeed is it its later like likewise moreover more most "
    "not of on one or other our recall recently second see several similarly similar since so some "
    "such than that the their then there these they third this those though thus to two unlike until "
    "using was we were what when where whereas whether which while who whose why with work yet again "
    "against among between building cf extends earlier early late notably importantly interestingly "
    "specifically together versus "
)
# Capitalised words that, alone before a year, give a date and cite nobody.
_DATED = _words(
    "january february march april may june july august september october november december jan feb "
    "mar apr jun jul aug sep sept oct nov dec spring summer autumn fall winter monday tuesday "
    "wednesday thursday friday saturday sunday figure fig figures figs table tables tab section "
    "sections sec chapter box panel equation eq eqs appendix supplementary supplement step task "
    "version release year years circa mid covid "
)
# A value follows these, as in "HR 2003, 95% CI 9.9 to 4.05e5".
_STATISTICS = _words("AIC AUC BIC CI HR IQR IRR MD OR RR SD SE SMD")
_DETACHED = (
    r"(?:n\.d\.|in press|forthcoming|submitted|in prep(?:aration|\.)?|unpublished|to appear"
    r"|pers(?:onal|\.) comm(?:unication|\.)?)"
)
_YEAR = rf"(?:(?:1[5-9]|20)\d\d[a-z]?(?![\w-]*\d)(?!\w)|{_DETACHED})"
_OTHERS = (
    r"(?:(?i:et\.?\s*al(?:ii|ia)?\b\.?)|(?:and|&)\s+(?:colleagues|co-?workers|co-?authors|associates|collaborators|others)\b"
    r"|等人?)"
)


@dataclass(frozen=True, slots=True)
class NamePatterns:
    """Compiled patterns; each has the groups `authors`, `others` and, except `unnamed`, `year`."""

    enclosed: re.Pattern[str]
    narrative: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class NamedSource:
    """The names by which a sentence may refer to a source it cites: its authors' family names, and its year."""

    family_names: tuple[str, ...]
    year: int | None

    @classmethod
    def of(cls, paper: Paper) -> NamedSource:
        names = paper.family_names or tuple(family_name(author) for author in paper.authors)
        return cls(tuple(_comparable(name) for name in names), paper.year)

    def is_named(self, authors: Sequence[str], others: bool, year: str) -> bool:
        """Whether "Lee and Gitter (2022)" names this source: its first author comes first, with its year or none."""
        if not authors or not self.family_names:
            return False
        if year[:4].isdigit() and self.year is not None and int(year[:4]) != self.year:
            return False
        if not _same(authors[0], self.family_names[0]):
            return False
        if any(not any(_same(author, name) for name in self.family_names[1:]) for author in authors[1:]):
            return False
        return others or len(authors) == min(len(self.family_names), len(authors))


def split_authors(written: str) -> list[str]:
    """The names in "Smith, Jones, and Lee"."""
    parts = re.split(r"(?<!\s)\s*+(?:,|&|;|\band\b|\bund\b)\s*", written)
    # "Smith, J. K." contains one name; "Lee" and "Wu" are names despite being short.
    return [part for part in parts if part and not re.fullmatch(r"(?:[^\W\d_a-zß-ÿ]\.?[\s-]?){1,3}", part)]


def only_dates(written: str, others: str) -> bool:
    """Whether apparent authors are really a word such as "August" or "Figure" before a date, or "HR" before a value."""
    words = re.findall(r"[^\W\d_]+", written)
    if not others and words and _STATISTICS.issuperset(words):
        return True
    return not others and bool(words) and all(word.casefold() in _DATED or word.casefold() == "and" for word in words)


@cache
def name_patterns() -> NamePatterns:
    """The patterns, built on first use: collecting the letters that can begin a name takes some milliseconds."""
    capital = f"[{_letters_that_begin_names()}]"
    leading = "|".join(sorted(re.escape(word.capitalize()) for word in _LEADING))
    word = rf"(?!(?:{leading})\b){capital}(?:[^\W\d_]|['-](?=[^\W\d_]))*"
    initials = rf"(?:{capital}\.[\s-]?){{1,4}}"
    author = (
        rf"(?:{initials}\s?)?(?:{_PARTICLE}\s){{0,3}}{word}(?:\s(?:{initials}|(?:{_PARTICLE}\s){{0,2}}{word})){{0,4}}"
        rf"(?:,\s{initials})?(?:,?\s(?:Jr|Sr|II|III)\b\.?)?"
    )
    between = r"\s*(?:,\s*(?:and\b|&)|,|\band\b|&|\bund\b)\s*"
    authors = rf"(?<![\w'-])(?P<authors>{author}(?:{between}{author}){{0,12}})"
    enclosed = re.compile(
        rf"{authors}(?:\s*+,?\s*+(?P<others>{_OTHERS}))?(?:'s?)?\s*+[,.:]?\s*+[(\[]?(?<![A-Za-z])(?P<year>{_YEAR})"
        rf"(?=\s*(?:$|[,;:.)\]&]|and\b|p\b|pp\b|\())"
    )
    narrative = re.compile(
        rf"{authors}(?:(?:\s*+,?\s*+(?P<others>{_OTHERS})(?:'s?)?(?:\s*+,?\s*+(?:\(\s*(?P<year>{_YEAR})[^()]{{0,40}}\)"
        rf"|\[\s*(?P<year2>{_YEAR})[^\[\]]{{0,40}}\]|(?P<year3>{_YEAR})))?)"
        rf"|(?:'s?)?\s*(?:\(\s*(?P<year4>{_YEAR})(?:[a-z]|\s*[,;:][^()]{{0,40}})?\s*\)"
        rf"|\[\s*(?P<year5>{_YEAR})(?:\s*[,;:][^\[\]]{{0,40}})?\s*\])"
        rf"|'s?\s(?P<year6>{_YEAR})|(?P<pair>\s*,\s*)(?P<year7>{_YEAR})(?=\s*[,.;:)]))"
    )
    return NamePatterns(enclosed, narrative)


def year_of(match: re.Match[str]) -> str:
    """The year of a match, empty if it has none."""
    return next((value for name, value in match.groupdict().items() if name.startswith("year") and value), "")


def _same(written: str, name: str) -> bool:
    mine = _comparable(written)
    if not mine:
        return False
    bare = " ".join(word for word in mine.split() if not re.fullmatch(_PARTICLE, word))
    own = " ".join(word for word in name.split() if not re.fullmatch(_PARTICLE, word))
    # "Consortium" for "The BioChatter Consortium", or "Ada Lovelace" for "Lovelace".
    return mine == name or bare == own or f" {mine}".endswith(f" {name}") or f" {name}".endswith(f" {mine}")


def _comparable(name: str) -> str:
    """A name without case, accents and punctuation."""
    spread = unicodedata.normalize("NFKD", name.casefold())
    letters = "".join(
        " " if character in "-'’.{}~" else character for character in spread if not unicodedata.combining(character)
    )
    return " ".join(letters.split())


def _letters_that_begin_names() -> str:
    """Letters that are not lower case, as ranges of a character class: capitals and scripts without case."""
    ranges: list[list[int]] = []
    for point in range(0x41, 0xFFDD):
        character = chr(point)
        if character.isalpha() and not character.islower() and unicodedata.category(character) != "Lm":
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
