"""Reads a PDF in a process of its own, so that a hostile file can neither hang nor end an ingest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from citeloom.documents.markdown import ParsedPaper
from citeloom.documents.pdf import PdfRefusedError, PdfText
from citeloom.documents.pdf.parsed import parsed_pdf
from citeloom.stores.converted import ConvertedFiles

# Real papers take some hundredths of a second for a page.
SECONDS = 120.0
_READER = "citeloom.documents.pdf"


def read_pdf_apart(path: Path, kept: ConvertedFiles | None = None, *, seconds: float = SECONDS) -> ParsedPaper:
    """The paper in a PDF; raises `PdfRefusedError` with the reason, also when the reader dies or takes too long.

    A PDF that was refused is read again the next time, one that was read is not while it stays as it is.
    """
    read = kept.get(path) if kept is not None else None
    if read is None:
        read = _read(path, seconds)
        if kept is not None:
            kept.put(path, read)
    return parsed_pdf(PdfText.from_dict(read))


def _read(path: Path, seconds: float) -> dict[str, Any]:
    # -P: a json.py in the folder where the user stands is not ours.
    command = [sys.executable, "-P", "-m", _READER, str(path.resolve())]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise PdfRefusedError(f"was not read within {seconds:g} seconds; it may be damaged") from None
    try:
        said = json.loads(done.stdout)
    except ValueError:
        raise PdfRefusedError(f"made the PDF reader fail (exit code {done.returncode}); it may be damaged") from None
    if "refused" in said:
        raise PdfRefusedError(said["refused"])
    return dict(said)
