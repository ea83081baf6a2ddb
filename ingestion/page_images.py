"""Images of PDF pages, drawn in a subprocess, so that a hostile file can neither hang nor crash a server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from ..documents.pdf.drawing import PageRefusedError
from ..documents.sandbox import OutOfTimeError, run

SECONDS: Final = 20.0
MAX_WORDS: Final = 4000  # characters
_RENDERER: Final = "citeloom.documents.pdf.drawing"
_PNG: Final = b"\x89PNG"

__all__ = ["PageRefusedError", "draw_page_apart"]


def draw_page_apart(path: Path, page: int, *, words: str = "", width: int = 1000, seconds: float = SECONDS) -> bytes:
    """A page of a PDF, counted from 1, as a PNG with these words marked; raises `PageRefusedError` with the reason."""
    # -P: a json.py in the current folder must not be imported.
    command = [sys.executable, "-P", "-m", _RENDERER, str(path.resolve()), str(page), str(width)]
    try:
        done = run([*command, words[:MAX_WORDS].replace("\0", " ")], seconds=seconds)
    except OutOfTimeError:
        raise PageRefusedError(f"the page was not drawn within {seconds:g} seconds") from None
    if done.output.startswith(_PNG):
        return done.output
    try:
        raise PageRefusedError(json.loads(done.output)["refused"])
    except (ValueError, KeyError, TypeError):
        raise PageRefusedError(f"the PDF made the renderer fail (exit code {done.code})") from None
