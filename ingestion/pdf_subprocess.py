"""Reads a PDF in a subprocess, so that a hostile file can neither hang nor crash an ingest."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..config import PdfReader
from ..documents.markdown import ParsedPaper
from ..documents.pdf import PdfRefusedError, PdfText
from ..documents.pdf.opendataloader import text_of
from ..documents.pdf.parsed import parsed_pdf
from ..documents.subprocesses import OutOfTimeError, run
from .conversion_cache import ConvertedFiles
from .opendataloader_process import OPENDATALOADER, read_layout, reader_version, require_java

# Real papers take some hundredths of a second per page.
SECONDS = 120.0
_READER = "citeloom.documents.pdf"


def read_pdf_apart(
    path: Path, kept: ConvertedFiles | None = None, *, reader: PdfReader = "pdf-oxide", seconds: float = SECONDS
) -> ParsedPaper:
    """Read the paper in a PDF; raises `PdfRefusedError` with the reason, also if the reader crashes or times out.

    A refused PDF is read again the next time; one that was read is cached until it changes. Raises `InputError` if
    the reader, or the Java that it needs, is not installed.
    """
    by = f"{OPENDATALOADER} {reader_version()}" if reader == OPENDATALOADER else ""
    read = kept.get(path, by) if kept is not None else None
    if read is None:
        read = _read_with_java(path, seconds) if by else _read(path, seconds)
        if kept is not None:
            kept.put(path, read, by)
    return parsed_pdf(PdfText.from_dict(read))


def _read(path: Path, seconds: float) -> dict[str, Any]:
    # -P: a json.py in the current folder must not be imported.
    command = [sys.executable, "-P", "-m", _READER, str(path.resolve())]
    try:
        done = run(command, seconds=seconds)
    except OutOfTimeError:
        raise PdfRefusedError(f"was not read within {seconds:g} seconds; it may be damaged") from None
    try:
        output = json.loads(done.output)
    except ValueError:
        raise PdfRefusedError(f"made the PDF reader fail (exit code {done.code}); it may be damaged") from None
    if "refused" in output:
        raise PdfRefusedError(output["refused"])
    return dict(output)


def _read_with_java(path: Path, seconds: float) -> dict[str, Any]:
    """Read twice: our own reader refuses unusable files, and extracts what opendataloader-pdf does not report."""
    java = require_java()
    own = PdfText.from_dict(_read(path, seconds))
    output = read_layout(path, java, seconds)
    try:
        return asdict(text_of(output, own))
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError) as error:
        raise PdfRefusedError(f"was read by opendataloader-pdf in an unknown format ({error})") from error
