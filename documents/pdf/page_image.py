"""Draws one page of a PDF as a PNG, with given words marked.

`python -m citeloom.documents.pdf.page_image FILE PAGE WIDTH WORDS` prints the image, or `{"refused": reason}`, and
exits with 0 either way. A damaged file can hang or crash pdfium, so nothing else runs in that process
(`ingestion/page_images.py` starts and monitors it).
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...plurals import counted
from ..memory_limit import bound_memory
from ..regular_files import FileRefusedError, read_regular
from .marked_words import Letter, marked_boxes

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_BYTES: Final = 200 << 20
_MAX_PIXELS: Final = 8_000_000
_MAX_CHARACTERS: Final = 100_000  # of a page whose words are looked for
_MEMORY: Final = 2 << 30  # bytes of address space
_COLOURS: Final = 128
_MARKER: Final = (255, 233, 122)


class PageRefusedError(Exception):
    """A page that cannot be drawn; the message is the reason in one line."""


def main() -> None:
    """Print the image of the page that the arguments name."""
    bound_memory(_MEMORY)
    # Messages of the library must not mix with the output.
    answer = os.dup(1)
    os.dup2(2, 1)
    path, number, width, words = sys.argv[1:5]
    try:
        output = page_image(Path(path), int(number), int(width), words)
    except PageRefusedError as error:
        output = json.dumps({"refused": str(error)}).encode()
    with os.fdopen(answer, "wb") as out:
        out.write(output)


def page_image(path: Path, number: int, width: int, words: str = "") -> bytes:
    """The page with this number, from 1, as a PNG that is `width` pixels wide; raises `PageRefusedError`."""
    import pypdfium2

    try:
        data = read_regular(path, MAX_BYTES)
    except FileRefusedError as error:
        raise PageRefusedError(f"the file {error}") from error
    except OSError as error:
        raise PageRefusedError(f"the file cannot be read ({error.strerror})") from error
    try:
        document = pypdfium2.PdfDocument(data)
        count = len(document)
        if not 1 <= number <= count:
            raise PageRefusedError(f"the PDF has {counted(count, 'page')}")
        return _drawn(document[number - 1], width, words)
    except pypdfium2.PdfiumError as error:
        raise PageRefusedError(f"the PDF cannot be opened ({error})") from error


def _drawn(page: Any, width: int, words: str) -> bytes:
    across, down = page.get_size()
    if across <= 0 or down <= 0:
        raise PageRefusedError("the page has no size")
    scale = min(width / across, (_MAX_PIXELS / (across * down)) ** 0.5)
    bitmap = page.render(scale=scale, may_draw_forms=False, rev_byteorder=True)
    image = bitmap.to_pil().convert("RGB")
    if words:
        place = bitmap.get_posconv(page).to_bitmap
        boxes = [(*place(left, top), *place(right, bottom)) for left, bottom, right, top in _found(page, words)]
        image = _marked(image, boxes)
    written = io.BytesIO()
    image.quantize(_COLOURS).save(written, "PNG", optimize=True)
    return written.getvalue()


def _found(page: Any, words: str) -> list[tuple[float, float, float, float]]:
    """The boxes of the words, in the coordinates of the page."""
    from pypdfium2 import raw

    text = page.get_textpage()
    count = min(text.count_chars(), _MAX_CHARACTERS)
    letters = [
        Letter(chr(code), *text.get_charbox(index))
        for index in range(count)
        if 0x20 < (code := raw.FPDFText_GetUnicode(text, index)) < 0x110000
        and not raw.FPDFText_IsGenerated(text, index)
    ]
    return marked_boxes(letters, words)


def _marked(image: Image, boxes: list[tuple[int, int, int, int]]) -> Image:
    """The image as if gone over with a marker: dark letters stay dark."""
    from PIL import Image as Images
    from PIL import ImageChops, ImageDraw

    colour = Images.new("RGB", image.size, "white")
    marker = ImageDraw.Draw(colour)
    for x0, y0, x1, y1 in boxes:
        marker.rectangle((min(x0, x1) - 2, min(y0, y1) - 2, max(x0, x1) + 2, max(y0, y1) + 2), fill=_MARKER)
    return ImageChops.multiply(image, colour)


if __name__ == "__main__":
    main()
