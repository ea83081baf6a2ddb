"""Reads the words of a page, with their places and sizes, from the hOCR that tesseract prints."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final
from xml.etree import ElementTree

from ..markdown import is_standard_heading
from ..safe_files import FileRefusedError
from .headings import NUMBERED
from .pages import Page, TextRun

_LINES: Final = frozenset({"ocr_line", "ocr_header", "ocr_caption", "ocr_textfloat"})
_LEAST_SURE: Final = 30  # tesseract's confidence, of 100: anything below is a spot or a line of a figure
_STRAIGHT: Final = 0.5  # degrees: a page this straight is read as it is
_WORDS_ENOUGH: Final = 3  # minimum words of a line used to measure skew
_SAME_SIZE: Final = 0.1  # letters that differ by less have the same size
_LETTER: Final = 0.8  # times the height of a line: the size of its letters
_MOST_CHARACTERS: Final = 20_000_000
_NUMBER: Final = r"(-?\d+(?:\.\d+)?)"
_BOX: Final = re.compile(rf"\bbbox {_NUMBER} {_NUMBER} {_NUMBER} {_NUMBER}")
_RESOLUTION: Final = re.compile(r"\bscan_res (\d+)")
_SIZE: Final = re.compile(rf"\bx_size {_NUMBER}")
_SURE: Final = re.compile(r"\bx_wconf (\d+)")
_TURNED: Final = re.compile(rf"\btextangle {_NUMBER}")
_SLOPE: Final = re.compile(rf"\bbaseline {_NUMBER}")

Box = tuple[float, float, float, float]  # left, top, right, bottom


class HocrError(FileRefusedError):
    """Output that is not hOCR; the message says so in one line."""


@dataclass(frozen=True, slots=True)
class OcrPage:
    """A page as read by OCR; `turn` is the counter-clockwise rotation in degrees that makes it upright."""

    page: Page
    turn: float

    @property
    def words(self) -> int:
        """The number of words read."""
        return len(self.page.runs)


@dataclass(frozen=True, slots=True)
class _Line:
    size: float
    words: tuple[tuple[str, Box], ...]
    turned: float
    slope: float
    opens: bool  # its paragraph


def read_hocr(text: str) -> OcrPage:
    """The words of the one page in tesseract's output; raises `HocrError`."""
    if len(text) > _MOST_CHARACTERS:
        raise HocrError("tesseract printed more than a page can hold")
    try:
        root = ElementTree.fromstring(text)
        sheet = next(node for node in root.iter() if node.get("class") == "ocr_page")
        _, _, width, height = _box(sheet)
        points = 72 / int(_found(_RESOLUTION, sheet, "300"))
        lines = [line for line in _lines(sheet) if line.words]
    except (ElementTree.ParseError, StopIteration, ValueError, ZeroDivisionError, RecursionError) as error:
        raise HocrError("tesseract printed something other than hOCR") from error
    runs = tuple(run for line in lines for run in _runs(line, height, points))
    return OcrPage(Page(width * points, height * points, runs, (), 0), _turn(lines))


def _lines(sheet: ElementTree.Element) -> Iterator[_Line]:
    for paragraph in (node for node in sheet.iter() if node.get("class") == "ocr_par"):
        lines = [node for node in paragraph if node.get("class") in _LINES]
        for place, node in enumerate(lines):
            words = tuple(
                (text, _box(word))
                for word in node
                if (text := "".join(word.itertext()).strip()) and int(_found(_SURE, word, "100")) >= _LEAST_SURE
            )
            size = float(_found(_SIZE, node, "0"))
            turned, slope = float(_found(_TURNED, node, "0")), float(_found(_SLOPE, node, "0"))
            yield _Line(size, words, turned, slope, place == 0)


def _found(pattern: re.Pattern[str], node: ElementTree.Element, otherwise: str) -> str:
    match = pattern.search(node.get("title", ""))
    return match.group(1) if match else otherwise


def _box(node: ElementTree.Element) -> Box:
    match = _BOX.search(node.get("title", ""))
    if match is None:
        raise ValueError("no bounding box")
    left, top, right, bottom = map(float, match.groups())
    return left, top, right, bottom


def unify_sizes(pages: Mapping[int, Page]) -> dict[int, Page]:
    """Unify letter sizes that tesseract measured slightly differently in each line.

    Headings that name a part of the paper all get the size of the largest, so that they share one level.
    """
    words = Counter(round(run.size, 1) for page in pages.values() for run in page.runs)
    common: dict[float, float] = {}
    for size, _ in words.most_common():
        if size not in common:
            near = [other for other in words if other not in common and abs(other - size) <= _SAME_SIZE * size]
            common |= dict.fromkeys(near, size)
    largest = max((run.size for page in pages.values() for run in page.runs if run.bold), default=0.0)

    def measured(run: TextRun) -> TextRun:
        size = common[round(largest if run.bold else run.size, 1)]
        return replace(run, size=size, height=size / _LETTER)

    return {number: replace(page, runs=tuple(map(measured, page.runs))) for number, page in pages.items()}


def _runs(line: _Line, height: float, points: float) -> Iterator[TextRun]:
    """The words of a line on one baseline."""
    low, size = (height - max(box[3] for _, box in line.words)) * points, line.size * points
    # Without fonts, only the name of a part of a paper identifies a heading.
    title = NUMBERED.sub("", " ".join(word for word, _ in line.words))
    bold = line.opens and title[:1].isupper() and is_standard_heading(title)
    for word, (left, _, right, _) in line.words:
        yield TextRun(left * points, low, (right - left) * points, size, size * _LETTER, bold, False, word)


def _turn(lines: Sequence[_Line]) -> float:
    """The degrees by which to rotate the page: quarter turns to make it upright, else whatever levels its lines."""
    quarters = [line.turned for line in lines for _ in line.words]
    if quarters and (quarter := median(quarters) % 360):
        return -quarter
    slopes = [line.slope for line in lines if len(line.words) >= _WORDS_ENOUGH for _ in line.words]
    skew = math.degrees(math.atan(median(slopes))) if slopes else 0.0
    return skew if abs(skew) > _STRAIGHT else 0.0
