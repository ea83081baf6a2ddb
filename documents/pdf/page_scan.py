"""Draws one page of a PDF in grey and becomes tesseract, which reads it and prints the words as hOCR.

`python -m citeloom.documents.pdf.page_scan FILE PAGE DEGREES PROGRAM LANGUAGES LAYOUT` turns the page by that many
degrees first; `{"blank": true}` or `{"refused": reason}` is printed instead of hOCR if there is nothing to read. The
drawn page is a file without a name, and no second process is started: whatever kills this one leaves nothing behind.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from ..memory_limit import bound_memory
from .page_image import PageRefusedError

if TYPE_CHECKING:
    from PIL.Image import Image

RESOLUTION: Final = 300  # dots per inch, as tesseract is trained
_LEAST_RESOLUTION: Final = 70  # tesseract takes anything lower for a mistake
_MAX_PIXELS: Final = 16_000_000  # an A3 page in full resolution
_MEMORY: Final = 2 << 30  # bytes of address space, tesseract's too
_SHADES: Final = 24  # of 255: a page with less contrast is blank


def main() -> None:
    """Read the page that the arguments name."""
    bound_memory(_MEMORY)
    # Messages of the library must not mix with the output.
    answer = os.dup(1)
    os.dup2(2, 1)
    path, number, degrees, program, languages, layout = sys.argv[1:7]
    try:
        image, resolution = grey_page(Path(path), int(number), float(degrees))
    except PageRefusedError as error:
        os.write(answer, json.dumps({"refused": str(error)}).encode())
        return
    if image is None:
        os.write(answer, b'{"blank": true}')
        return
    os.dup2(answer, 1)
    with tempfile.TemporaryFile() as drawn:
        image.save(drawn, "PPM")
        _become_tesseract(drawn, program, languages, layout, resolution)


def grey_page(path: Path, number: int, degrees: float = 0.0) -> tuple[Image | None, int]:
    """The page with this number, from 1, turned counter-clockwise, and its resolution; no image of a blank page.

    Raises `PageRefusedError`.
    """
    import pypdfium2

    try:
        page = pypdfium2.PdfDocument(path)[number - 1]
        across, down = page.get_size()
        if across <= 0 or down <= 0:
            raise PageRefusedError("has no size")
        scale = min(RESOLUTION / 72, math.sqrt(_MAX_PIXELS / (across * down)))
        image = page.render(scale=scale, grayscale=True, may_draw_forms=False).to_pil().convert("L")
    except (pypdfium2.PdfiumError, MemoryError) as error:
        raise PageRefusedError(f"cannot be drawn ({error or 'out of memory'})") from error
    darkest, lightest = image.getextrema()
    if lightest - darkest < _SHADES:
        return None, 0
    if degrees:
        image = image.rotate(degrees, expand=True, fillcolor=255)
    return image, max(_LEAST_RESOLUTION, round(scale * 72))


def _become_tesseract(drawn: IO[bytes], program: str, languages: str, layout: str, resolution: int) -> None:
    """Replace this process by tesseract, with the image as its input."""
    drawn.flush()
    os.lseek(drawn.fileno(), 0, os.SEEK_SET)
    os.dup2(drawn.fileno(), 0)
    options = ["-l", languages, "--psm", layout, "--dpi", str(resolution), "-c", "tessedit_create_hocr=1"]
    # Pages are read side by side, so each needs one core only.
    os.execve(program, [program, "stdin", "stdout", *options], {**os.environ, "OMP_THREAD_LIMIT": "1"})


if __name__ == "__main__":
    main()
