"""Draws pages, figures and ruled tables of a PDF, locating the words of a quote or caption on the page.

The words come from another library, which joins hyphenated words, resolves ligatures and adds markdown. So only letters
and digits are compared, ignoring case; interruptions on the page, such as a figure, are skipped.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...plurals import counted
from ..figures import FigureKind
from ..safe_files import FileRefusedError, read_regular
from ..sandbox import CallLimits, SandboxError, sandboxed
from .figure_regions import Box, PageLayout, enclosing_box, find_region

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_BYTES: Final = 200 << 20
MAX_WORDS: Final = 4000  # characters of a quote
SECONDS: Final = 20.0
_MEMORY: Final = 2 << 30  # bytes of address space
_MAX_CHARACTERS: Final = 100_000  # maximum for a page on which words are looked for
_MAX_COMPARED: Final = 20_000  # maximum letters of a page to compare part by part
_FEWEST: Final = 12  # minimum letters of a part of the quote, so that no common word is marked elsewhere
_LEAST_SHARE: Final = 0.25  # minimum share of the quote on a page; less is only a chance similarity
_MAX_PIXELS: Final = 8_000_000
_COLOURS: Final = 128
_MARKER: Final = (255, 233, 122)
_MAX_CAPTION: Final = 3_000  # characters of a caption to look for
_MAX_DRAWINGS: Final = 50_000
_FIGURE_SCALE: Final = 2.5  # pixels per point: 180 per inch
_MAX_FIGURE_PIXELS: Final = 4_000_000
_MARGIN: Final = 4.0  # points around a figure
_BORDER: Final = 8  # pixels around a drawing
_TEXT: Final = 1  # pdfium's number for a text object
_NOTHING: Final = "is not drawn next to its caption, or is part of a scanned page"


@dataclass(frozen=True, slots=True)
class WantedFigure:
    """A figure whose image to read: by page (from 1) and words of its caption in a PDF, else by address."""

    number: int
    kind: FigureKind
    page: int
    words: str
    address: str


@dataclass(frozen=True, slots=True)
class Letter:
    """A character of a page and its box."""

    character: str
    left: float
    bottom: float
    right: float
    top: float


def draw_page_apart(path: Path, page: int, *, words: str = "", width: int = 1000, seconds: float = SECONDS) -> bytes:
    """A page of a PDF, counted from 1, as a PNG with these words marked; raises `FileRefusedError` with the reason."""
    limits = CallLimits(seconds, _MEMORY)
    try:
        drawn = sandboxed(draw_page, limits, path.resolve(), page, width, words[:MAX_WORDS].replace("\0", " "))
    except SandboxError as error:
        raise FileRefusedError(f"the page was not drawn: drawing it {error}") from None
    if not isinstance(drawn, bytes):
        raise FileRefusedError("the page was not drawn")
    return drawn


def draw_page(path: str, number: int, width: int, words: str) -> bytes:
    """The page as a PNG that is `width` pixels wide; raises `FileRefusedError`. To be called in a sandbox."""
    import pypdfium2
    from PIL import Image as Images, ImageChops, ImageDraw

    try:
        document = pypdfium2.PdfDocument(read_regular(Path(path), MAX_BYTES))
        count = len(document)
        if not 1 <= number <= count:
            raise FileRefusedError(f"the PDF has {counted(count, 'page')}")
        page = document[number - 1]
        across, down = page.get_size()
        if across <= 0 or down <= 0:
            raise FileRefusedError("the page has no size")
        bitmap = page.render(
            scale=min(width / across, (_MAX_PIXELS / (across * down)) ** 0.5), may_draw_forms=False, rev_byteorder=True
        )
        image = bitmap.to_pil().convert("RGB")
        if words:
            place = bitmap.get_posconv(page).to_bitmap
            marked = Images.new("RGB", image.size, "white")
            marker = ImageDraw.Draw(marked)
            for left, bottom, right, top in find_quote_boxes(_letters(page), words):
                (x0, x1), (y0, y1) = map(sorted, zip(place(left, top), place(right, bottom), strict=True))
                marker.rectangle((x0 - 2, y0 - 2, x1 + 2, y1 + 2), fill=_MARKER)
            image = ImageChops.multiply(image, marked)  # as by a marker pen: dark letters stay dark
    except OSError as error:
        raise FileRefusedError(f"the file cannot be read ({error.strerror})") from error
    except pypdfium2.PdfiumError as error:
        raise FileRefusedError(f"the PDF cannot be opened ({error})") from error
    png = io.BytesIO()
    image.quantize(_COLOURS).save(png, "PNG", optimize=True)
    return png.getvalue()


def draw_figures(data: bytes, wanted: Sequence[WantedFigure]) -> Iterator[tuple[int, Image | FileRefusedError]]:
    """The images of figures by their number; raises `FileRefusedError` for an unreadable PDF.

    To be called in a sandbox: a damaged file can hang or crash pdfium.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
        count = len(document)
    except pypdfium2.PdfiumError as error:
        raise FileRefusedError(f"is in a PDF that cannot be opened ({error})") from error
    for page in sorted({figure.page for figure in wanted if 1 <= figure.page <= count}):
        figures = [figure for figure in wanted if figure.page == page]
        try:
            yield from _draw_figures_of(document[page - 1], figures)
        except (pypdfium2.PdfiumError, OSError, ValueError, MemoryError) as error:
            reason = FileRefusedError(f"its page cannot be drawn ({error})")
            yield from ((figure.number, reason) for figure in figures)


def draw_first_page(data: bytes) -> Image:
    """The first page of a PDF that is itself a figure; raises `FileRefusedError`."""
    import pypdfium2

    try:
        page = pypdfium2.PdfDocument(data)[0]
        return _draw_region(page, (0.0, 0.0, *page.get_size()))
    except (pypdfium2.PdfiumError, OSError, ValueError, IndexError, MemoryError) as error:
        raise FileRefusedError(f"is a PDF that cannot be drawn ({error})") from error


def _draw_figures_of(page: Any, figures: Sequence[WantedFigure]) -> Iterator[tuple[int, Image | FileRefusedError]]:
    letters = _letters(page)
    found = {figure.number: find_quote_boxes(letters, figure.words[:_MAX_CAPTION]) for figure in figures}
    captions = {number: enclosing_box(boxes) for number, boxes in found.items() if boxes}
    width, height = page.get_size()
    drawings = tuple(
        (max(left, 0.0), max(bottom, 0.0), min(right, width), min(top, height))
        for item in islice(page.get_objects(max_depth=1), _MAX_DRAWINGS)
        if item.type != _TEXT
        for left, bottom, right, top in [item.get_bounds()]
    )
    layout = PageLayout(width, height, drawings, tuple(merge_letter_boxes(letters)), tuple(captions.values()))
    for figure in figures:
        caption = captions.get(figure.number)
        region = find_region(caption, figure.kind, layout) if caption else None
        try:
            yield figure.number, _draw_region(page, region) if region else FileRefusedError(_NOTHING)
        except FileRefusedError as error:
            yield figure.number, error


def _draw_region(page: Any, region: Box) -> Image:
    from PIL import Image as Images, ImageChops

    width, height = page.get_size()
    left, bottom = (max(0.0, edge - _MARGIN) for edge in region[:2])
    right, top = min(width, region[2] + _MARGIN), min(height, region[3] + _MARGIN)
    scale = min(_FIGURE_SCALE, (_MAX_FIGURE_PIXELS / max(1.0, (right - left) * (top - bottom))) ** 0.5)
    crop = (left, bottom, width - right, height - top)
    bitmap = page.render(scale=scale, crop=crop, may_draw_forms=False, rev_byteorder=True)
    image: Image = bitmap.to_pil().convert("RGB")
    found = ImageChops.difference(image, Images.new("RGB", image.size, "white")).getbbox()
    if found is None:
        raise FileRefusedError("is blank")
    x0, y0, x1, y1 = found
    right_edge, lower_edge = min(image.width, x1 + _BORDER), min(image.height, y1 + _BORDER)
    return image.crop((max(0, x0 - _BORDER), max(0, y0 - _BORDER), right_edge, lower_edge))


def _letters(page: Any) -> list[Letter]:
    from pypdfium2 import raw

    text = page.get_textpage()
    return [
        Letter(chr(code), *text.get_charbox(index))
        for index in range(min(text.count_chars(), _MAX_CHARACTERS))
        if 0x20 < (code := raw.FPDFText_GetUnicode(text, index)) < 0x110000
        and not raw.FPDFText_IsGenerated(text, index)
    ]


def find_quote_boxes(letters: Sequence[Letter], words: str) -> list[Box]:
    """One box for each line, or part of a line, with words of the quote; empty if they are not on the page."""
    folded = [(plain, place) for place, letter in enumerate(letters) for plain in _fold(letter.character)]
    parts = _find_parts("".join(plain for plain, _ in folded), _fold(words))
    places = [folded[index][1] for start, end in parts for index in range(start, end)]
    return merge_letter_boxes([letters[place] for place in dict.fromkeys(places)])


def _fold(text: str) -> str:
    """The letters and digits of a text, in one case and without ligatures or accents."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text.casefold())))


def _find_parts(page: str, quote: str) -> list[tuple[int, int]]:
    """The spans of the quote, whole or in parts, in the letters of the page."""
    start = page.find(quote)
    if not quote or start >= 0:
        return [(start, start + len(quote))] if quote else []
    if len(page) > _MAX_COMPARED:
        return []
    blocks = SequenceMatcher(None, page, quote, autojunk=False).get_matching_blocks()
    long = [block for block in blocks if block.size >= min(_FEWEST, len(quote))]
    if sum(block.size for block in long) < _LEAST_SHARE * len(quote):
        return []
    return [(block.a, block.a + block.size) for block in long]


def merge_letter_boxes(letters: Sequence[Letter]) -> list[Box]:
    """Merge the boxes of neighbouring letters."""
    boxes: list[Box] = []
    for letter in letters:
        box = (letter.left, letter.bottom, letter.right, letter.top)
        line = boxes[-1] if boxes else box
        heights = line[3] - line[1], letter.top - letter.bottom
        overlap = min(line[3], letter.top) - max(line[1], letter.bottom)
        # On the same line, to the right of the letter before.
        if boxes and overlap >= 0.3 * min(heights) and -max(heights) < letter.left - line[2] < 2 * max(heights):
            boxes[-1] = enclosing_box([line, box])
        else:
            boxes.append(box)
    return boxes
