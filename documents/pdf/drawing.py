"""Draws pages, figures and ruled tables of a PDF; words of a quote or caption are found among the letters of a page.

To be called only in a sandbox: a damaged file can hang or crash pdfium.
"""

from __future__ import annotations

import io
import json
import os
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...plurals import counted
from ..figures import FigureKind
from ..image_decoding import EncodedImage, ImageRefusedError, encoded
from ..safe_files import FileRefusedError, read_regular
from ..sandbox import bound_memory
from .figure_regions import Box, PageLayout, region_of

if TYPE_CHECKING:
    from PIL.Image import Image


_FEWEST: Final = 12  # letters of a part of the quote, so that no common word is marked elsewhere
_LEAST_SHARE: Final = 0.25  # of the quote: on a page with less there are not these words but similar ones
_MOST_COMPARED: Final = 20_000  # letters of a page that are compared part by part


@dataclass(frozen=True, slots=True)
class Letter:
    """A character of a page and its box."""

    character: str
    left: float
    bottom: float
    right: float
    top: float


def marked_boxes(letters: Sequence[Letter], words: str) -> list[Box]:
    """One box for each line, or part of a line, that holds words of the quote; empty if they are not on the page."""
    folded = [(plain, place) for place, letter in enumerate(letters) for plain in _plain(letter.character)]
    page = "".join(plain for plain, _ in folded)
    quote = "".join(_plain(words))
    places = [folded[index][1] for start, end in _spans(page, quote) for index in range(start, end)]
    return line_boxes([letters[place] for place in dict.fromkeys(places)])


def _plain(text: str) -> Iterator[str]:
    """The letters and digits of a text, in one case and without ligatures or accents."""
    for character in unicodedata.normalize("NFKD", text.casefold()):
        if character.isalnum():
            yield character


def _spans(page: str, quote: str) -> list[tuple[int, int]]:
    """Where the quote stands in the letters of the page, whole or in parts."""
    start = page.find(quote)
    if not quote or start >= 0:
        return [(start, start + len(quote))] if quote else []
    if len(page) > _MOST_COMPARED:
        return []
    blocks = SequenceMatcher(None, page, quote, autojunk=False).get_matching_blocks()
    long = [block for block in blocks if block.size >= min(_FEWEST, len(quote))]
    if sum(block.size for block in long) < _LEAST_SHARE * len(quote):
        return []
    return [(block.a, block.a + block.size) for block in long]


def line_boxes(letters: Sequence[Letter]) -> list[Box]:
    """The boxes of neighbouring letters as one box."""
    boxes: list[Box] = []
    for letter in letters:
        box = (letter.left, letter.bottom, letter.right, letter.top)
        if boxes and _continues(boxes[-1], box):
            last = boxes[-1]
            boxes[-1] = (min(last[0], box[0]), min(last[1], box[1]), max(last[2], box[2]), max(last[3], box[3]))
        else:
            boxes.append(box)
    return boxes


def _continues(line: Box, letter: Box) -> bool:
    """True for a letter on the same line, to the right of what was marked last."""
    height = max(line[3] - line[1], letter[3] - letter[1])
    overlap = min(line[3], letter[3]) - max(line[1], letter[1])
    lowest = min(line[3] - line[1], letter[3] - letter[1])
    return overlap >= 0.3 * lowest and -height < letter[0] - line[2] < 2 * height


Wanted = tuple[int, FigureKind, str]  # number of the figure, its kind and the words of its caption

_SCALE: Final = 2.5  # pixels per point: 180 per inch
_MAX_FIGURE_PIXELS: Final = 4_000_000
_MAX_FIGURE_CHARACTERS: Final = 60_000  # of a page
_MAX_DRAWINGS: Final = 50_000
_MARGIN: Final = 4.0  # points around a figure
_BORDER: Final = 8  # pixels around what is drawn
_TEXT: Final = 1  # pdfium's number for a text object
_NOTHING: Final = "is not drawn next to its caption, or is part of a scanned page"
_CAPTION: Final = 3_000  # characters of a caption that are looked for


def drawn_figures(
    data: bytes, wanted: Mapping[int, Sequence[Wanted]]
) -> Iterator[tuple[int, EncodedImage | ImageRefusedError]]:
    """The images of the figures on each page (from 1), by number; raises `ImageRefusedError` for an unreadable PDF."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
        count = len(document)
    except pypdfium2.PdfiumError as error:
        raise ImageRefusedError(f"is in a PDF that cannot be opened ({error})") from error
    for page, figures in wanted.items():
        try:
            if 1 <= page <= count:
                yield from _of_page(document[page - 1], figures)
        except (pypdfium2.PdfiumError, OSError, ValueError, MemoryError) as error:
            yield from ((number, ImageRefusedError(f"its page cannot be drawn ({error})")) for number, *_ in figures)


def drawn_page(data: bytes) -> EncodedImage:
    """The first page of a PDF that is itself a figure; raises `ImageRefusedError`."""
    import pypdfium2

    try:
        page = pypdfium2.PdfDocument(data)[0]
        return encoded(_draw_region(page, (0.0, 0.0, *page.get_size())))
    except (pypdfium2.PdfiumError, OSError, ValueError, IndexError, MemoryError) as error:
        raise ImageRefusedError(f"is a PDF that cannot be drawn ({error})") from error


def _of_page(page: Any, figures: Sequence[Wanted]) -> Iterator[tuple[int, EncodedImage | ImageRefusedError]]:
    letters = _letters(page)
    captions = {number: _union(marked_boxes(letters, words[:_CAPTION])) for number, _, words in figures}
    width, height = page.get_size()
    boxes = tuple(box for box in captions.values() if box)
    layout = PageLayout(width, height, tuple(_drawings(page)), tuple(line_boxes(letters)), boxes)
    for number, kind, _ in figures:
        caption = captions[number]
        region = region_of(caption, kind, layout) if caption else None
        try:
            yield number, encoded(_draw_region(page, region)) if region else ImageRefusedError(_NOTHING)
        except ImageRefusedError as error:
            yield number, error


def _letters(page: Any) -> list[Letter]:
    from pypdfium2 import raw

    text = page.get_textpage()
    return [
        Letter(chr(code), *text.get_charbox(index))
        for index in range(min(text.count_chars(), _MAX_FIGURE_CHARACTERS))
        if 0x20 < (code := raw.FPDFText_GetUnicode(text, index)) < 0x110000
        and not raw.FPDFText_IsGenerated(text, index)
    ]


def _drawings(page: Any) -> Iterator[Box]:
    width, height = page.get_size()
    for item in islice(page.get_objects(max_depth=1), _MAX_DRAWINGS):
        if item.type != _TEXT:
            left, bottom, right, top = item.get_bounds()
            yield max(left, 0.0), max(bottom, 0.0), min(right, width), min(top, height)


def _union(boxes: Sequence[Box]) -> Box | None:
    if not boxes:
        return None
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)


def _draw_region(page: Any, region: Box) -> Any:
    """The region of a page, without white margins."""
    from PIL import Image, ImageChops

    width, height = page.get_size()
    left, bottom, right, top = (
        max(0.0, region[0] - _MARGIN),
        max(0.0, region[1] - _MARGIN),
        min(width, region[2] + _MARGIN),
        min(height, region[3] + _MARGIN),
    )
    scale = min(_SCALE, (_MAX_FIGURE_PIXELS / max(1.0, (right - left) * (top - bottom))) ** 0.5)
    crop = (left, bottom, width - right, height - top)
    bitmap = page.render(scale=scale, crop=crop, may_draw_forms=False, rev_byteorder=True)
    image = bitmap.to_pil().convert("RGB")
    found = ImageChops.difference(image, Image.new("RGB", image.size, "white")).getbbox()
    if found is None:
        raise ImageRefusedError("is blank")
    return image.crop(
        (
            max(0, found[0] - _BORDER),
            max(0, found[1] - _BORDER),
            min(image.width, found[2] + _BORDER),
            min(image.height, found[3] + _BORDER),
        )
    )


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
        return _draw_page(document[number - 1], width, words)
    except pypdfium2.PdfiumError as error:
        raise PageRefusedError(f"the PDF cannot be opened ({error})") from error


def _draw_page(page: Any, width: int, words: str) -> bytes:
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
