"""Reads pages without text by tesseract, each in a process of its own within limits."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from ..subprocesses import OutOfTimeError, run
from .hocr import HocrError, OcrPage, in_common_sizes, read_hocr
from .pages import Page

PAGE_SECONDS: Final = 60.0  # usual pages take two to five
_AT_ONCE: Final = 4
PAGE_READINGS: Final = 3  # of one page: as it lies, upright, and with level lines
_ENOUGH: Final = 0.8  # of the words of the best reading
_READER: Final = "citeloom.documents.pdf.page_scan"


@dataclass(frozen=True, slots=True)
class Ocr:
    """An installed tesseract: the path of the program, the languages to read, and the layout analysis to use."""

    program: str
    languages: str
    layout: str = "3"


@dataclass(frozen=True, slots=True)
class ScannedPages:
    """What OCR made of pages, by their number from 1: `failed` are the reasons why pages were not read."""

    read: Mapping[int, Page]
    failed: Mapping[int, str]


class _PageError(Exception):
    """A page that was not read; the message is the reason."""


def read_scanned(path: Path, numbers: Sequence[int], ocr: Ocr, seconds: float = PAGE_SECONDS) -> ScannedPages:
    """Read these pages, counted from 1, several at once; a page that fails does not keep the others from being read."""
    with ThreadPoolExecutor(pages_at_once()) as pool:
        results = list(pool.map(partial(_read, path, ocr=ocr, seconds=seconds), numbers))
    found = dict(zip(numbers, results, strict=True))
    return ScannedPages(
        in_common_sizes({number: page for number, page in found.items() if isinstance(page, Page)}),
        {number: reason for number, reason in found.items() if isinstance(reason, str)},
    )


def pages_at_once() -> int:
    """How many pages are read at the same time."""
    return min(_AT_ONCE, os.cpu_count() or 1)


def _read(path: Path, number: int, *, ocr: Ocr, seconds: float) -> Page | str:
    degrees, readings = 0.0, list[OcrPage]()
    try:
        while len(readings) < PAGE_READINGS and not (readings and not readings[-1].turn):
            readings.append(_scanned(path, number, degrees, ocr, seconds))
            degrees += readings[-1].turn
    except (_PageError, HocrError) as error:
        return str(error)
    # An upright page is laid out better, even if a word or two more were read as it lay.
    most = max(read.words for read in readings)
    return next(read.page for read in reversed(readings) if read.words >= _ENOUGH * most)


def _scanned(path: Path, number: int, degrees: float, ocr: Ocr, seconds: float) -> OcrPage:
    # -P: a json.py in the current folder must not be imported.
    command = [sys.executable, "-P", "-m", _READER, str(path), str(number), f"{degrees:.2f}"]
    try:
        done = run([*command, ocr.program, ocr.languages, ocr.layout], seconds=seconds)
    except OutOfTimeError:
        raise _PageError(f"was not read within {seconds:g} seconds") from None
    text = done.output.decode("utf-8", "replace")
    if text.startswith("{"):
        return _not_drawn(text)
    if done.code:
        raise _PageError(f"made tesseract fail (exit code {done.code})")
    return read_hocr(text)


def _not_drawn(text: str) -> OcrPage:
    """An empty page, if it is blank; raises `_PageError` if it could not be drawn."""
    try:
        said = json.loads(text)
    except ValueError:
        raise HocrError("tesseract printed something else than hOCR") from None
    if "refused" in said:
        raise _PageError(str(said["refused"]))
    return OcrPage(Page(0.0, 0.0, (), (), 0), 0.0)
