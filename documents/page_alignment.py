"""Finds the pages of a paper's text in a PDF of the same paper, by the words that both have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .markdown import ParsedPaper

_RUN = 6  # words that identify a place
_SAME = 0.6  # of the pages with text must be found, in order
_WORD = re.compile(r"[^\W_]+")


def with_pages_of(paper: ParsedPaper, pdf: ParsedPaper) -> ParsedPaper | None:
    """The paper with the pages of its PDF; None if the PDF has another text.

    A page whose words are not in the text, such as one of figures, begins where the next one does.
    """
    words = [(match.group().casefold(), match.start()) for match in _WORD.finditer(paper.text)]
    places = _unique_runs([word for word, _ in words])
    ends = [*pdf.page_starts[1:], len(pdf.text)]
    starts: list[int | None] = []
    found = counted = last = 0
    for begin, end in zip(pdf.page_starts, ends, strict=True):
        page = [match.group().casefold() for match in _WORD.finditer(pdf.text[begin:end])]
        place = _first_place(page, places, last)
        counted += len(page) >= 2 * _RUN
        found += place is not None and len(page) >= 2 * _RUN
        last = place if place is not None else last
        starts.append(words[place][1] if place is not None else None)
    if not counted or found < _SAME * counted:
        return None
    return replace(paper, page_starts=_without_gaps(starts, len(paper.text)))


def _unique_runs(words: Sequence[str]) -> dict[tuple[str, ...], int]:
    """The place of each run of words that occurs once."""
    places: dict[tuple[str, ...], int] = {}
    for place in range(len(words) - _RUN + 1):
        run = tuple(words[place : place + _RUN])
        places[run] = -1 if run in places else place
    return places


def _first_place(page: Sequence[str], places: dict[tuple[str, ...], int], last: int) -> int | None:
    """The place of the first run on the page that is in the text, not before `last`."""
    for offset in range(len(page) - _RUN + 1):
        place = places.get(tuple(page[offset : offset + _RUN]), -1)
        if place >= last:
            return max(last, place - offset) if offset < _RUN else place
    return None


def _without_gaps(starts: Sequence[int | None], length: int) -> tuple[int, ...]:
    filled: list[int] = []
    following = length
    for start in reversed(starts):
        following = following if start is None else min(start, following)
        filled.append(following)
    return (0, *reversed(filled[:-1]))
