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


@dataclass(frozen=True, slots=True)
class OcrPage:
    """A page as read by OCR; `turn` is the counter-clockwise rotation in degrees that makes it upright."""

    page: Page
    turn: float


def read_hocr(text: str) -> OcrPage:
    """The words of the one page in tesseract's output; raises `FileRefusedError`."""
    if len(text) > _MOST_CHARACTERS:
        raise FileRefusedError("tesseract printed more than a page can hold")
    runs: list[TextRun] = []
    turned: list[float] = []  # the angle of each word's line
    slopes: list[float] = []  # the same of long lines, within that angle
    try:
        root = ElementTree.fromstring(text)
        sheet = next(node for node in root.iter() if node.get("class") == "ocr_page")
        _, _, width, height = _box(sheet)
        points = 72 / int(_found(_RESOLUTION, sheet, "300"))
        for paragraph in (node for node in sheet.iter() if node.get("class") == "ocr_par"):
            lines = [node for node in paragraph if node.get("class") in _LINES]
            for place, line in enumerate(lines):
                words = [
                    (text, _box(word))
                    for word in line
                    if (text := "".join(word.itertext()).strip()) and int(_found(_SURE, word, "100")) >= _LEAST_SURE
                ]
                slope, count = float(_found(_SLOPE, line, "0")), len(words)
                turned += [float(_found(_TURNED, line, "0"))] * count
                slopes += [slope] * count if count >= _WORDS_ENOUGH else []
                runs += _runs(words, float(_found(_SIZE, line, "0")) * points, height, points, opens=place == 0)
    except (ElementTree.ParseError, StopIteration, ValueError, ZeroDivisionError, RecursionError) as error:
        raise FileRefusedError("tesseract printed something other than hOCR") from error
    # Quarter turns make the page upright; else whatever levels its lines.
    quarter = median(turned) % 360 if turned else 0.0
    skew = math.degrees(math.atan(median(slopes))) if slopes else 0.0
    turn = -quarter or (skew if abs(skew) > _STRAIGHT else 0.0)
    return OcrPage(Page(width * points, height * points, tuple(runs), (), 0), turn)


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


def _runs(
    words: Sequence[tuple[str, Box]], size: float, height: float, points: float, *, opens: bool
) -> Iterator[TextRun]:
    """The words of a line on one baseline; `opens` if it is the first of its paragraph."""
    low = (height - max((box[3] for _, box in words), default=0.0)) * points
    # Without fonts, only the name of a part of a paper identifies a heading.
    title = NUMBERED.sub("", " ".join(word for word, _ in words))
    bold = opens and title[:1].isupper() and is_standard_heading(title)
    for word, (left, _, right, _) in words:
        yield TextRun(left * points, low, (right - left) * points, size, size * _LETTER, bold, False, word)
