"""Reads pages without text with tesseract, each in a separate process within limits, and the hOCR that it prints."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from ...errors import InputError
from ..markdown import is_standard_heading
from ..safe_files import FileRefusedError
from ..sandbox import CallLimits, OutOfTimeError, SandboxError, run, run_sandboxed
from .headings import NUMBERED
from .pages import Page, TextRun

if TYPE_CHECKING:
    from PIL.Image import Image

    from ...settings.config import Settings  # each page is read in a process that would import it

PAGE_SECONDS: Final = 60.0  # typical pages take two to five
PAGE_READINGS: Final = 3  # per page: as scanned, upright, and with level lines
_AT_ONCE: Final = 4
_ENOUGH: Final = 0.8  # of the words of the best reading
_RESOLUTION: Final = 300  # dots per inch, as tesseract is trained
_LEAST_RESOLUTION: Final = 70  # tesseract treats anything lower as a mistake
_MAX_PIXELS: Final = 16_000_000  # an A3 page in full resolution
_MEMORY: Final = 2 << 30  # bytes of address space, and as much for tesseract
_SHADES: Final = 24  # of 255: a page with less contrast is blank
_SIGNALLED: Final = 128
_SECONDS: Final = 20.0
_ORIENTATION: Final = "osd"  # the model that detects a page's orientation
_UPRIGHT, _ANY_WAY_UP = "3", "1"  # tesseract's page segmentation modes without and with that model
_OTHERWISE: Final = "or leave --ocr and CITELOOM_OCR out"


@dataclass(frozen=True, slots=True)
class Ocr:
    """An installed tesseract: the path of the program, the languages to read, and the layout analysis to use."""

    program: str
    languages: str
    layout: str = "3"


def read_scanned(
    path: Path, numbers: Sequence[int], ocr: Ocr, seconds: float = PAGE_SECONDS
) -> tuple[dict[int, Page], dict[int, str]]:
    """Read these pages (from 1) concurrently, by their numbers; and why some could not be read."""
    limits = CallLimits(seconds, _MEMORY)

    def read(number: int) -> Page | str:
        """The page, or the reason why it cannot be read."""
        degrees, readings = 0.0, list[Page]()
        try:
            for _ in range(PAGE_READINGS):
                hocr = run_sandboxed(scan_page, limits, path, number, degrees, ocr.program, ocr.languages, ocr.layout)
                page, turn = read_hocr(str(hocr)) if hocr is not None else (Page(0.0, 0.0, (), (), 0), 0.0)
                readings.append(page)
                degrees += turn
                if not turn:
                    break
        except (FileRefusedError, SandboxError) as error:
            return str(error)
        # Layout is better on an upright page, even if a word or two more were read before rotation.
        most = max(len(page.runs) for page in readings)
        return next(page for page in reversed(readings) if len(page.runs) >= _ENOUGH * most)

    with ThreadPoolExecutor(pages_at_once()) as pool:
        results = list(pool.map(read, numbers))
    found = dict(zip(numbers, results, strict=True))
    failed = {number: reason for number, reason in found.items() if isinstance(reason, str)}
    return unify_sizes({number: page for number, page in found.items() if isinstance(page, Page)}), failed


def pages_at_once() -> int:
    """How many pages are read at the same time."""
    return min(_AT_ONCE, os.cpu_count() or 1)


def scan_page(path: str, number: int, degrees: float, program: str, languages: str, layout: str) -> str | None:
    """Tesseract's hOCR output for a page; None for a blank page. Call it in a sandbox.

    The drawn page is an unnamed file, so nothing is left behind if this process is killed. Raises
    `FileRefusedError`.
    """
    image, resolution = draw_grey_page(Path(path), number, degrees)
    if image is None:
        return None
    options = ["-l", languages, "--psm", layout, "--dpi", str(resolution), "-c", "tessedit_create_hocr=1"]
    with tempfile.TemporaryFile() as drawn:
        image.save(drawn, "PPM")
        drawn.seek(0)
        # Pages are read in parallel, so each needs only one core.
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
        done = subprocess.run(
            [program, "stdin", "stdout", *options], stdin=drawn, stdout=subprocess.PIPE, env=environment, check=False
        )
    if done.returncode:
        code = done.returncode if done.returncode > 0 else _SIGNALLED - done.returncode
        raise FileRefusedError(f"made tesseract fail (exit code {code})")
    return done.stdout.decode("utf-8", "replace")


def draw_grey_page(path: Path, number: int, degrees: float = 0.0) -> tuple[Image | None, int]:
    """Draw a page (from 1), rotated counter-clockwise, with its resolution; no image for a blank page.

    Raises `FileRefusedError`.
    """
    import pypdfium2

    try:
        page = pypdfium2.PdfDocument(path)[number - 1]
        across, down = page.get_size()
        if across <= 0 or down <= 0:
            raise FileRefusedError("has no size")
        scale = min(_RESOLUTION / 72, math.sqrt(_MAX_PIXELS / (across * down)))
        image = page.render(scale=scale, grayscale=True, may_draw_forms=False).to_pil().convert("L")
    except (pypdfium2.PdfiumError, MemoryError) as error:
        raise FileRefusedError(f"cannot be drawn ({error or 'out of memory'})") from error
    darkest, lightest = image.getextrema()
    if lightest - darkest < _SHADES:
        return None, 0
    if degrees:
        image = image.rotate(degrees, expand=True, fillcolor=255)
    return image, max(_LEAST_RESOLUTION, round(scale * 72))


def choose_ocr(settings: Settings, *, required: bool = False) -> Ocr | None:
    """The tesseract to use, or None; raises `InputError` if it is `required` and cannot run, or lacks a language."""
    if not required and (settings.ocr == "off" or shutil.which("tesseract") is None):
        return None
    return find_ocr(settings.ocr_languages)


def find_ocr(languages: str) -> Ocr:
    """The installed tesseract; raises `InputError` if something that it needs is missing."""
    program = shutil.which("tesseract")
    if program is None:
        raise InputError(
            "OCR needs tesseract: no 'tesseract' in PATH.",
            help=f"Install it (apt install tesseract-ocr, brew install tesseract), {_OTHERWISE}.",
        )
    lines = map(str.strip, _run_tesseract(program, "--list-langs").splitlines())
    known = [line for line in lines if re.fullmatch(r"[\w/]+", line)]
    missing = [name for name in languages.split("+") if name not in known]
    if missing:
        raise InputError(
            f"CITELOOM_OCR_LANGUAGES: tesseract has no language {missing[0]}; it has {', '.join(known) or 'none'}.",
            help=f"Install it (apt install tesseract-ocr-{missing[0].replace('_', '-')}), or name others.",
        )
    return Ocr(str(Path(program).absolute()), languages, _ANY_WAY_UP if _ORIENTATION in known else _UPRIGHT)


def tesseract_version(program: str) -> str:
    """The program's version line, such as "tesseract 5.3.0"; raises `InputError` if it does not start."""
    return (_run_tesseract(program, "--version").splitlines() or ["tesseract"])[0].strip()


def _run_tesseract(program: str, option: str) -> str:
    try:
        done = run([str(Path(program).absolute()), option], seconds=_SECONDS)
    except (OutOfTimeError, OSError):
        done = None
    if done is None or done.code:
        raise InputError(f"OCR needs tesseract, but {program} does not start.", help=f"Repair it, {_OTHERWISE}.")
    return done.output.decode("utf-8", "replace") or done.errors


_LINES: Final = frozenset({"ocr_line", "ocr_header", "ocr_caption", "ocr_textfloat"})
_LEAST_SURE: Final = 30  # tesseract's confidence, of 100: anything below is a spot or a line of a figure
_STRAIGHT: Final = 0.5  # degrees: a page this straight is read as it is
_WORDS_ENOUGH: Final = 3  # minimum words of a line used to measure skew
_SAME_SIZE: Final = 0.1  # letters that differ by less have the same size
_LETTER: Final = 0.8  # times the height of a line: the size of its letters
_MOST_CHARACTERS: Final = 20_000_000
_NUMBER: Final = r"(-?\d+(?:\.\d+)?)"
_BOX: Final = re.compile(rf"\bbbox {_NUMBER} {_NUMBER} {_NUMBER} {_NUMBER}")
_SCANNED_AT: Final = re.compile(r"\bscan_res (\d+)")
_SIZE: Final = re.compile(rf"\bx_size {_NUMBER}")
_SURE: Final = re.compile(r"\bx_wconf (\d+)")
_TURNED: Final = re.compile(rf"\btextangle {_NUMBER}")
_SLOPE: Final = re.compile(rf"\bbaseline {_NUMBER}")

Corners = tuple[float, float, float, float]  # left, top, right, bottom


def read_hocr(text: str) -> tuple[Page, float]:
    """The words of the one page in tesseract's output, and the counter-clockwise degrees that make it upright.

    Raises `FileRefusedError`.
    """
    if len(text) > _MOST_CHARACTERS:
        raise FileRefusedError("tesseract printed more than a page can hold")
    runs: list[TextRun] = []
    turned: list[float] = []  # the angle of each word's line
    slopes: list[float] = []  # the same for long lines, within that angle
    try:
        root = ElementTree.fromstring(text)
        sheet = next(node for node in root.iter() if node.get("class") == "ocr_page")
        _, _, width, height = _box(sheet)
        points = 72 / int(_read_title(_SCANNED_AT, sheet, "300"))
        for paragraph in (node for node in sheet.iter() if node.get("class") == "ocr_par"):
            lines = [node for node in paragraph if node.get("class") in _LINES]
            for place, line in enumerate(lines):
                words = [
                    (text, _box(word))
                    for word in line
                    if (text := "".join(word.itertext()).strip())
                    and int(_read_title(_SURE, word, "100")) >= _LEAST_SURE
                ]
                slope, count = float(_read_title(_SLOPE, line, "0")), len(words)
                turned += [float(_read_title(_TURNED, line, "0"))] * count
                slopes += [slope] * count if count >= _WORDS_ENOUGH else []
                runs += _runs(words, float(_read_title(_SIZE, line, "0")) * points, height, points, opens=place == 0)
    except (ElementTree.ParseError, StopIteration, ValueError, ZeroDivisionError, RecursionError) as error:
        raise FileRefusedError("tesseract printed something other than hOCR") from error
    # Quarter turns make the page upright; else whatever levels its lines.
    quarter = median(turned) % 360 if turned else 0.0
    skew = math.degrees(math.atan(median(slopes))) if slopes else 0.0
    turn = -quarter or (skew if abs(skew) > _STRAIGHT else 0.0)
    return Page(width * points, height * points, tuple(runs), (), 0), turn


def _read_title(pattern: re.Pattern[str], node: ElementTree.Element, otherwise: str) -> str:
    match = pattern.search(node.get("title", ""))
    return match.group(1) if match else otherwise


def _box(node: ElementTree.Element) -> Corners:
    match = _BOX.search(node.get("title", ""))
    if match is None:
        raise ValueError("no bounding box")
    left, top, right, bottom = map(float, match.groups())
    return left, top, right, bottom


def unify_sizes(pages: Mapping[int, Page]) -> dict[int, Page]:
    """Unify letter sizes that tesseract measured differently by line; headings of standard parts share the largest."""
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
    words: Sequence[tuple[str, Corners]], size: float, height: float, points: float, *, opens: bool
) -> Iterator[TextRun]:
    """The words of a line on one baseline; `opens` if it is the first of its paragraph."""
    low = (height - max((box[3] for _, box in words), default=0.0)) * points
    # Without fonts, only the name of a part of a paper identifies a heading.
    title = NUMBERED.sub("", " ".join(word for word, _ in words))
    bold = opens and title[:1].isupper() and is_standard_heading(title)
    for word, (left, _, right, _) in words:
        yield TextRun(left * points, low, (right - left) * points, size, size * _LETTER, bold, False, word)
