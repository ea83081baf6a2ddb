"""Reads pages without text with tesseract, each in a separate process within limits."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import InputError
from ...program import install_hint
from ...settings.config import Settings
from ..safe_files import FileRefusedError
from ..sandbox import CallLimits, OutOfTimeError, SandboxError, run, sandboxed
from .hocr import OcrPage, read_hocr, unify_sizes
from .pages import Page

if TYPE_CHECKING:
    from PIL.Image import Image

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
_PACKAGES: Final = ("pypdfium2", "PIL")
_ORIENTATION: Final = "osd"  # the model that detects a page's orientation
_UPRIGHT, _ANY_WAY_UP = "3", "1"  # tesseract's numbers for its layout analysis without and with that model
_OTHERWISE: Final = "or leave --ocr and CITELOOM_OCR out"


@dataclass(frozen=True, slots=True)
class Ocr:
    """An installed tesseract: the path of the program, the languages to read, and the layout analysis to use."""

    program: str
    languages: str
    layout: str = "3"


@dataclass(frozen=True, slots=True)
class ScannedPages:
    """The results of OCR by page number from 1; `failed` are the reasons why pages could not be read."""

    read: Mapping[int, Page]
    failed: Mapping[int, str]


def read_scanned(path: Path, numbers: Sequence[int], ocr: Ocr, seconds: float = PAGE_SECONDS) -> ScannedPages:
    """Read these pages (from 1) concurrently; a page that fails does not affect the others."""
    limits = CallLimits(seconds, _MEMORY)
    with ThreadPoolExecutor(pages_at_once()) as pool:
        results = list(pool.map(partial(_read, path, ocr=ocr, limits=limits), numbers))
    found = dict(zip(numbers, results, strict=True))
    failed = {number: reason for number, reason in found.items() if isinstance(reason, str)}
    return ScannedPages(unify_sizes({number: page for number, page in found.items() if isinstance(page, Page)}), failed)


def pages_at_once() -> int:
    """How many pages are read at the same time."""
    return min(_AT_ONCE, os.cpu_count() or 1)


def _read(path: Path, number: int, *, ocr: Ocr, limits: CallLimits) -> Page | str:
    degrees, readings = 0.0, list[OcrPage]()
    try:
        while len(readings) < PAGE_READINGS and not (readings and not readings[-1].turn):
            hocr = sandboxed(scan_page, limits, path, number, degrees, ocr.program, ocr.languages, ocr.layout)
            readings.append(read_hocr(str(hocr)) if hocr is not None else OcrPage(Page(0.0, 0.0, (), (), 0), 0.0))
            degrees += readings[-1].turn
    except (FileRefusedError, SandboxError) as error:
        return str(error)
    # Layout is better on an upright page, even if a word or two more were read before rotation.
    most = max(len(read.page.runs) for read in readings)
    return next(read.page for read in reversed(readings) if len(read.page.runs) >= _ENOUGH * most)


def scan_page(path: str, number: int, degrees: float, program: str, languages: str, layout: str) -> str | None:
    """Tesseract's hOCR output for a page; None for a blank page. Call it in a sandbox.

    The drawn page is an unnamed file, so nothing is left behind if this process is killed. Raises
    `FileRefusedError`.
    """
    image, resolution = grey_page(Path(path), number, degrees)
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


def grey_page(path: Path, number: int, degrees: float = 0.0) -> tuple[Image | None, int]:
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
    """The tesseract to use by the settings; None if OCR is off, or automatic and not installed.

    Raises `InputError` if it is `required` but cannot run, and if it does not know a language.
    """
    installed = shutil.which("tesseract") is not None and _has_packages()
    if not required and (settings.ocr == "off" or not installed):
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
    if not _has_packages():
        raise InputError("OCR needs pypdfium2 and pillow.", help=f"{install_hint('ocr')}.")
    lines = map(str.strip, _printed(program, "--list-langs").splitlines())
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
    return (_printed(program, "--version").splitlines() or ["tesseract"])[0].strip()


def _has_packages() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in _PACKAGES)


def _printed(program: str, option: str) -> str:
    try:
        done = run([str(Path(program).absolute()), option], seconds=_SECONDS)
    except (OutOfTimeError, OSError):
        done = None
    if done is None or done.code:
        raise InputError(f"OCR needs tesseract, but {program} does not start.", help=f"Repair it, {_OTHERWISE}.")
    return done.output.decode("utf-8", "replace") or done.errors
