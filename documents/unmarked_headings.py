"""Detects headings without markdown syntax: bold or capitalised lines, numbered lines, names of standard parts.

Word files without styles and plain text have only these. They are only searched for in papers without marked headings:
if the author has marked headings, a bold line is just a bold line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .categories import Placement, place, said_outright
from .types import Category

_MOST_WORDS = 12
_MOST_LETTERS = 100
_MOST_CHARACTERS = 1000
_LEAST_LETTERS = 2
_LEAST_SURE = 2
_DEEPEST = 6
_BOLD = re.compile(r"(\*\*\*|\*\*|__)(?=\S)([^*]+?)(?<=\S)\1")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2})*)\.?\s+(?=[^\W\d_])")
_ROMAN = re.compile(r"([IVX]{1,5})\.\s+(?=[^\W\d_])")
_CAPTION = re.compile(r"(?:fig(?:ure|\.)?|table|box|scheme|algorithm)\s*\w?\d", re.IGNORECASE)
_NO_WORDS = re.compile(r"https?://|[<>=$|]|^!?\[")
_SENTENCE_END = re.compile(r"[.;:,!?]$")


@dataclass(frozen=True, slots=True)
class PlainHeading:
    """The words of a heading and its level; `sure` if they are numbered or name a standard part of a paper."""

    title: str
    level: int
    sure: bool


def plain_heading(line: str) -> PlainHeading | None:
    """Parse a separate line as a heading; None if it is text."""
    if len(line) > _MOST_CHARACTERS:
        return None
    bold = _BOLD.fullmatch(line.strip())
    title = " ".join((bold.group(2) if bold else line).split())
    letters = [character for character in title if character.isalpha()]
    if len(title.split()) > _MOST_WORDS or not _LEAST_LETTERS <= len(letters) <= _MOST_LETTERS:
        return None
    if _NO_WORDS.search(title) or _CAPTION.match(title) or title.endswith(":") or "**" in title:
        return None
    number = _NUMBERED.match(title) or _ROMAN.match(title)
    rest = title[number.end() :] if number else title
    sure = number is not None or names_part(rest)
    level = min(_DEEPEST, 2 + number.group(1).count(".")) if number else 2
    if bold:
        return PlainHeading(title, level, sure)
    capitals = title == title.upper() != title.lower() and len(letters) > 2 * _LEAST_LETTERS
    if _SENTENCE_END.search(title) or not (sure or capitals) or (number and rest[0].islower()):
        return None
    return PlainHeading(title, level, sure)


def names_part(title: str) -> bool:
    """Whether it is the title of a usual part of a paper, reference lists among them."""
    if said_outright(title) is not None:
        return True
    return place(title, 1) == Placement(Category.OTHER, searchable=False)


def headings_among(paragraphs: Sequence[str]) -> Iterator[tuple[int, PlainHeading]]:
    """The headings among paragraphs, by index; none unless at least two are sure.

    The first paragraph is the title (level 1) unless it names a standard part.
    """
    found = [
        (index, heading)
        for index, text in enumerate(paragraphs)
        if "\n" not in text.strip() and (heading := plain_heading(text)) is not None
    ]
    if sum(heading.sure for _, heading in found) < _LEAST_SURE:
        return
    for index, heading in found:
        is_title = index == 0 and not heading.sure
        yield index, PlainHeading(heading.title, 1, sure=False) if is_title else heading
