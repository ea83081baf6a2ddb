"""Reads a PDF in a process of its own, so that a hostile file can neither hang nor end an ingest."""

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

# Real papers take some hundredths of a second for a page.
SECONDS = 120.0
_READER = "citeloom.documents.pdf"


def read_pdf_apart(
    path: Path, kept: ConvertedFiles | None = None, *, reader: PdfReader = "pdf-oxide", seconds: float = SECONDS
) -> ParsedPaper:
    """The paper in a PDF; raises `PdfRefusedError` with the reason, also when the reader dies or takes too long.

    A PDF that was refused is read again the next time, one that was read is not while it stays as it is.
    Raises `InputError` when the reader, or the Java that it needs, is not installed.
    """
    by = f"{OPENDATALOADER} {reader_version()}" if reader == OPENDATALOADER else ""
    read = kept.get(path, by) if kept is not None else None
    if read is None:
        read = _read_with_java(path, seconds) if by else _read(path, seconds)
        if kept is not None:
            kept.put(path, read, by)
    return parsed_pdf(PdfText.from_dict(read))


def _read(path: Path, seconds: float) -> dict[str, Any]:
    # -P: a json.py in the folder where the user stands is not ours.
    command = [sys.executable, "-P", "-m", _READER, str(path.resolve())]
    try:
        done = run(command, seconds=seconds)
    except OutOfTimeError:
        raise PdfRefusedError(f"was not read within {seconds:g} seconds; it may be damaged") from None
    try:
        said = json.loads(done.output)
    except ValueError:
        raise PdfRefusedError(f"made the PDF reader fail (exit code {done.code}); it may be damaged") from None
    if "refused" in said:
        raise PdfRefusedError(said["refused"])
    return dict(said)


def _read_with_java(path: Path, seconds: float) -> dict[str, Any]:
    """Read twice: our own reading refuses what cannot be taken, and knows what the other one does not say."""
    java = require_java()
    own = PdfText.from_dict(_read(path, seconds))
    said = read_layout(path, java, seconds)
    try:
        return asdict(text_of(said, own))
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError) as error:
        raise PdfRefusedError(f"was read by opendataloader-pdf in a form that is not known ({error})") from error
