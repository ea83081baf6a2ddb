"""Reads one PDF and prints `{"text": ...}`, or `{"refused": reason, "unread": pages}`; exits with 0 either way.

`python -m citeloom.documents.pdf FILE [PROGRAM LANGUAGES LAYOUT]` reads pages without text by that tesseract.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from ..sandbox import bound_memory
from .ocr import Ocr
from .reader import PdfRefusedError, read_pdf

_MEMORY = 4 << 30  # bytes of address space


def main() -> None:
    """Print the content of the file that the arguments name."""
    bound_memory(_MEMORY)
    # The parser's own messages must not mix with the output.
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        result = asdict(read_pdf(Path(sys.argv[1]), Ocr(*sys.argv[2:]) if sys.argv[2:] else None))
    except PdfRefusedError as error:
        result = {"refused": str(error), "unread": error.unread}
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        json.dump(result, out)


if __name__ == "__main__":
    main()
