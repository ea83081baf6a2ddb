"""Reads a PDF in a subprocess, so that a hostile file can neither hang nor crash an ingest."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..documents.markdown import ParsedPaper
from ..documents.pdf import PdfRefusedError, PdfText
from ..documents.pdf.ocr import PAGE_READINGS, PAGE_SECONDS, Ocr, pages_at_once
from ..documents.pdf.parsed import parsed_pdf
from ..documents.subprocesses import OutOfTimeError, run
from ..settings.config import Settings
from .conversion_cache import ConvertedFiles
from .tesseract import ocr_of

# Real papers take some hundredths of a second per page.
SECONDS = 120.0
_READER = "citeloom.documents.pdf"


@dataclass(frozen=True, slots=True)
class PdfReading:
    """How PDFs are read: pages without text by which OCR (none if it is off)."""

    ocr: Ocr | None = None

    @classmethod
    def of(cls, settings: Settings, *, ocr: bool = False) -> PdfReading:
        """As the settings say, but with OCR in any case if `ocr`; raises `InputError` if what they name is missing."""
        return cls(ocr_of(settings, required=ocr))


BUILT_IN = PdfReading()


def read_pdf_apart(
    path: Path, kept: ConvertedFiles | None = None, *, how: PdfReading = BUILT_IN, seconds: float = SECONDS
) -> ParsedPaper:
    """Read the paper in a PDF; raises `PdfRefusedError` with the reason, also if the reader crashes or times out.

    A refused PDF is read again the next time; one that was read is cached until it changes.
    """
    read = kept.get(path) if kept is not None else None
    if read is None or _wants_ocr(read, how.ocr):
        read = _read(path, how.ocr, seconds)
        if kept is not None:
            kept.put(path, read)
    return parsed_pdf(PdfText.from_dict(read))


def _wants_ocr(read: Mapping[str, Any], ocr: Ocr | None) -> bool:
    """Whether OCR would add to what is cached: pages that it has not read yet, or not in these languages."""
    return ocr is not None and bool(read["unread"] or (read["ocr_pages"] and read["ocr"] != ocr.languages))


def _read(path: Path, ocr: Ocr | None, seconds: float) -> dict[str, Any]:
    read = _printed(path, (), seconds)
    if ocr is not None and read["unread"]:
        batches = math.ceil(len(read["unread"]) / pages_at_once())
        read = _printed(
            path, (ocr.program, ocr.languages, ocr.layout), seconds + batches * PAGE_READINGS * PAGE_SECONDS
        )
    if "refused" in read:
        raise PdfRefusedError(read["refused"], read["unread"])
    return read


def _printed(path: Path, options: tuple[str, ...], seconds: float) -> dict[str, Any]:
    """What the reader prints of a file, which may be that it refuses the file."""
    # -P: a json.py in the current folder must not be imported.
    command = [sys.executable, "-P", "-m", _READER, str(path.resolve()), *options]
    try:
        done = run(command, seconds=seconds)
    except OutOfTimeError:
        raise PdfRefusedError(f"was not read within {seconds:g} seconds; it may be damaged") from None
    try:
        return dict(json.loads(done.output))
    except ValueError:
        raise PdfRefusedError(f"made the PDF reader fail (exit code {done.code}); it may be damaged") from None
