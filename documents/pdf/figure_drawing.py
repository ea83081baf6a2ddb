"""Draws the figures and ruled tables of a PDF, each found by the words of its caption.

To be called only in a supervised process: a damaged file can hang or crash pdfium.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from ..figures import FigureKind
from ..image_decoding import EncodedImage, ImageRefusedError, encoded
from .figure_regions import PageLayout, region_of
from .marked_words import Box, Letter, line_boxes, marked_boxes

Wanted = tuple[int, FigureKind, str]  # number of the figure, its kind and the words of its caption

_SCALE: Final = 2.5  # pixels per point: 180 per inch
_MAX_PIXELS: Final = 4_000_000
_MAX_CHARACTERS: Final = 60_000  # of a page
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
        return encoded(_drawn(page, (0.0, 0.0, *page.get_size())))
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
            yield number, encoded(_drawn(page, region)) if region else ImageRefusedError(_NOTHING)
        except ImageRefusedError as error:
            yield number, error


def _letters(page: Any) -> list[Letter]:
    from pypdfium2 import raw

    text = page.get_textpage()
    return [
        Letter(chr(code), *text.get_charbox(index))
        for index in range(min(text.count_chars(), _MAX_CHARACTERS))
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


def _drawn(page: Any, region: Box) -> Any:
    """The region of a page, without white margins."""
    from PIL import Image, ImageChops

    width, height = page.get_size()
    left, bottom, right, top = (
        max(0.0, region[0] - _MARGIN),
        max(0.0, region[1] - _MARGIN),
        min(width, region[2] + _MARGIN),
        min(height, region[3] + _MARGIN),
    )
    scale = min(_SCALE, (_MAX_PIXELS / max(1.0, (right - left) * (top - bottom))) ** 0.5)
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
