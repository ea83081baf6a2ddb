"""Finds the words of a quote among the letters of a page.

The quote was read by another library, which joins hyphenated words, resolves ligatures and adds markdown. So only
letters and digits are compared, in any case; what interrupts the quote on the page, such as a figure, is skipped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

Box = tuple[float, float, float, float]  # left, bottom, right, top

_FEWEST: Final = 12  # letters of a part of the quote, so that no common word is marked elsewhere
_LEAST_SHARE: Final = 0.25  # of the quote: on a page with less there are not these words but similar ones
_MOST_COMPARED: Final = 20_000  # letters of a page that are compared part by part


@dataclass(frozen=True, slots=True)
class Letter:
    """A character of a page and its box."""

    character: str
    left: float
    bottom: float
    right: float
    top: float


def marked_boxes(letters: Sequence[Letter], words: str) -> list[Box]:
    """One box for each line, or part of a line, that holds words of the quote; empty if they are not on the page."""
    folded = [(plain, place) for place, letter in enumerate(letters) for plain in _plain(letter.character)]
    page = "".join(plain for plain, _ in folded)
    quote = "".join(_plain(words))
    places = [folded[index][1] for start, end in _spans(page, quote) for index in range(start, end)]
    return line_boxes([letters[place] for place in dict.fromkeys(places)])


def _plain(text: str) -> Iterator[str]:
    """The letters and digits of a text, in one case and without ligatures or accents."""
    for character in unicodedata.normalize("NFKD", text.casefold()):
        if character.isalnum():
            yield character


def _spans(page: str, quote: str) -> list[tuple[int, int]]:
    """Where the quote stands in the letters of the page, whole or in parts."""
    start = page.find(quote)
    if not quote or start >= 0:
        return [(start, start + len(quote))] if quote else []
    if len(page) > _MOST_COMPARED:
        return []
    blocks = SequenceMatcher(None, page, quote, autojunk=False).get_matching_blocks()
    long = [block for block in blocks if block.size >= min(_FEWEST, len(quote))]
    if sum(block.size for block in long) < _LEAST_SHARE * len(quote):
        return []
    return [(block.a, block.a + block.size) for block in long]


def line_boxes(letters: Sequence[Letter]) -> list[Box]:
    """The boxes of neighbouring letters as one box."""
    boxes: list[Box] = []
    for letter in letters:
        box = (letter.left, letter.bottom, letter.right, letter.top)
        if boxes and _continues(boxes[-1], box):
            last = boxes[-1]
            boxes[-1] = (min(last[0], box[0]), min(last[1], box[1]), max(last[2], box[2]), max(last[3], box[3]))
        else:
            boxes.append(box)
    return boxes


def _continues(line: Box, letter: Box) -> bool:
    """True for a letter on the same line, to the right of what was marked last."""
    height = max(line[3] - line[1], letter[3] - letter[1])
    overlap = min(line[3], letter[3]) - max(line[1], letter[1])
    lowest = min(line[3] - line[1], letter[3] - letter[1])
    return overlap >= 0.3 * lowest and -height < letter[0] - line[2] < 2 * height
