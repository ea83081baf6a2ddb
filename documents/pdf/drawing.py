"""Draws pages, figures and ruled tables of a PDF, locating the words of a quote or caption on the page.

The words come from another library, which joins hyphenated words, resolves ligatures and adds markdown. So only letters
and digits are compared, ignoring case; interruptions on the page, such as a figure, are skipped. Drawings are all
non-letters painted on a page: images, forms, paths. A figure extends from its caption, across the drawings, to the
running text on their other side; a table is what is between its rules.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...plurals import counted
from ...text.words import letters_of
from ..figures import FigureKind
from ..safe_files import FileRefusedError, read_regular
from ..sandbox import CallLimits, SandboxError, run_sandboxed

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

Box = tuple[float, float, float, float]  # left, bottom, right, top
Letter = tuple[str, Box]  # a character of a page and its box

_TWO_COLUMNS: Final = 0.35  # share of the lines: if fewer cross the middle, the page has two columns
_LINES_ENOUGH: Final = 16
_WIDE: Final = 0.6  # of the column: the minimum width of a line of running text
_SPACING: Final = 2.2  # times the height of a line: lines further apart are not one paragraph
_WHOLE_PAGE: Final = 0.85  # of the page: a larger drawing is its background
_LEAST: Final = 40.0  # smaller drawings are decoration
_RULE: Final = 3.0  # the maximum height of a rule
_LEAST_RULE: Final = 60.0
_TO_RULE: Final = 45.0  # from the caption to the first rule of its table
_SAME_EDGE: Final = 6.0
_LEAST_TABLE: Final = 30.0
_GROWTH: Final = 200  # steps in which a grid of cells is followed
_LABELS: Final = 30.0  # from a drawing to letters that belong to it


@dataclass(frozen=True, slots=True)
class WantedFigure:
    """A figure whose image to read: by page (from 1) and words of its caption in a PDF, else by address."""

    number: int
    kind: FigureKind
    page: int
    words: str
    address: str


def draw_page_apart(path: Path, page: int, *, words: str = "", width: int = 1000, seconds: float = SECONDS) -> bytes:
    """A page of a PDF, counted from 1, as a PNG with these words marked; raises `FileRefusedError` with the reason."""
    limits, plain = CallLimits(seconds, _MEMORY), words[:MAX_WORDS].replace("\0", " ")
    try:
        return bytes(run_sandboxed(draw_page, limits, path.resolve(), page, width, plain))
    except SandboxError as error:
        raise FileRefusedError(f"the page was not drawn: drawing it {error}") from None


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
    """The images of figures by number; call in a sandbox, since pdfium may crash. Raises `FileRefusedError`."""
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
    layout = PageLayout(
        width, height, drawings, tuple(merge_boxes([box for _, box in letters])), tuple(captions.values())
    )
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
        (chr(code), text.get_charbox(index))
        for index in range(min(text.count_chars(), _MAX_CHARACTERS))
        if 0x20 < (code := raw.FPDFText_GetUnicode(text, index)) < 0x110000
        and not raw.FPDFText_IsGenerated(text, index)
    ]


def find_quote_boxes(letters: Sequence[Letter], words: str) -> list[Box]:
    """One box for each line, or part of a line, with words of the quote, whole or in parts."""
    folded = [(plain, place) for place, (character, _) in enumerate(letters) for plain in letters_of(character)]
    page, quote = "".join(plain for plain, _ in folded), letters_of(words)
    start = page.find(quote) if quote else -1
    parts = [(start, start + len(quote))] if start >= 0 else []
    if quote and not parts and len(page) <= _MAX_COMPARED:
        blocks = SequenceMatcher(None, page, quote, autojunk=False).get_matching_blocks()
        long = [(block.a, block.a + block.size) for block in blocks if block.size >= min(_FEWEST, len(quote))]
        parts = long if sum(end - start for start, end in long) >= _LEAST_SHARE * len(quote) else []
    places = dict.fromkeys(folded[index][1] for start, end in parts for index in range(start, end))
    return merge_boxes([letters[place][1] for place in places])


def merge_boxes(letters: Sequence[Box]) -> list[Box]:
    boxes: list[Box] = []
    for box in letters:
        line = boxes[-1] if boxes else box
        heights, overlap = (line[3] - line[1], box[3] - box[1]), min(line[3], box[3]) - max(line[1], box[1])
        # On the same line, to the right of the letter before.
        if boxes and overlap >= 0.3 * min(heights) and -max(heights) < box[0] - line[2] < 2 * max(heights):
            boxes[-1] = enclosing_box([line, box])
        else:
            boxes.append(box)
    return boxes


@dataclass(frozen=True, slots=True)
class PageLayout:
    """Where a page has drawings, lines of letters and captions."""

    width: float
    height: float
    drawings: tuple[Box, ...]
    lines: tuple[Box, ...]
    captions: tuple[Box, ...]


def find_region(caption: Box, kind: FigureKind, page: PageLayout) -> Box | None:
    """The box of the figure or table with this caption; None if none is drawn next to it."""
    middle, (left, right) = page.width / 2, (0.0, page.width)  # of the column that contains the caption
    crossing = sum(line[0] < middle < line[2] for line in page.lines)
    two_columns = len(page.lines) >= _LINES_ENOUGH and crossing <= _TWO_COLUMNS * len(page.lines)
    if two_columns and not caption[0] < middle - _SAME_EDGE < middle + _SAME_EDGE < caption[2]:
        left, right = (0.0, middle) if caption[2] <= middle + _SAME_EDGE else (middle, page.width)
    drawings = [box for box in page.drawings if not _fills(box, page)]
    others = [box for box in page.captions if box != caption]
    if kind == "table":
        # Lines of a table may be as wide as running text, so only the next caption bounds it.
        beside = [box for box in others if box[0] < caption[2] and box[2] > caption[0]]
        low, high = _free_space(caption, beside, page)
        spaces = (caption[3] - 1, high), (low, caption[1] + 1)
        near = [box for space in spaces if (box := _ruled_box(caption, space, drawings))]
        if near:
            return min(near, key=lambda box: min(abs(box[1] - caption[3]), abs(caption[1] - box[3])))
    bounds = [box for box in others if box[0] < right and box[2] > left]
    low, high = _free_space(caption, [*bounds, *_running_text(left, right, page)], page)
    for bottom, top in ((caption[3], high), (low, caption[1])):
        found = _drawn_box((left, bottom, right, top), drawings, page)
        if found:
            return found
    return None


def _free_space(caption: Box, bounds: Sequence[Box], page: PageLayout) -> tuple[float, float]:
    below = max((box[3] for box in bounds if box[3] <= caption[1] + 1), default=0.0)
    return below, min((box[1] for box in bounds if box[1] >= caption[3] - 1), default=page.height)


def _fills(box: Box, page: PageLayout) -> bool:
    return (box[2] - box[0]) * (box[3] - box[1]) > _WHOLE_PAGE * page.width * page.height


def _running_text(left: float, right: float, page: PageLayout) -> list[Box]:
    """The lines of paragraphs in a column: lines as wide as the column, next to another such line."""
    inside = [line for line in page.lines if line[0] < right and line[2] > left and not _drawn_on(line, page)]
    width = max((line[2] for line in inside), default=0.0) - min((line[0] for line in inside), default=0.0)
    wide = sorted((line for line in inside if line[2] - line[0] > _WIDE * width), key=lambda line: -line[1])
    near = [_follows(above, below) for above, below in pairwise(wide)]
    text = [line for line, up, down in zip(wide, [False, *near], [*near, False], strict=True) if up or down]
    # The last line of a paragraph may be short.
    return text + [
        line for line in inside if any(_follows(above, line) and abs(above[0] - line[0]) < _SAME_EDGE for above in text)
    ]


def _follows(above: Box, below: Box) -> bool:
    return 0 < above[1] - below[1] < _SPACING * max(above[3] - above[1], below[3] - below[1])


def _drawn_on(line: Box, page: PageLayout) -> bool:
    across, down = (line[0] + line[2]) / 2, (line[1] + line[3]) / 2
    return any(
        min(box[2] - box[0], box[3] - box[1]) > _LEAST
        and not _fills(box, page)
        and box[0] <= across <= box[2]
        and box[1] <= down <= box[3]
        for box in page.drawings
    )


def _drawn_box(area: Box, drawings: Iterable[Box], page: PageLayout) -> Box | None:
    inside = [_clip(box, area) for box in drawings if _overlaps(box, area)]
    if not inside:
        return None
    drawn = enclosing_box(inside)
    if drawn[2] - drawn[0] < _LEAST or drawn[3] - drawn[1] < _LEAST:
        return None
    reach = (drawn[0] - _LABELS, drawn[1] - _LABELS, drawn[2] + _LABELS, drawn[3] + _LABELS)
    letters = [_clip(line, area) for line in page.lines if _overlaps(line, reach) and _overlaps(line, area)]
    return enclosing_box([drawn, *letters])


def _ruled_box(caption: Box, space: tuple[float, float], drawings: Sequence[Box]) -> Box | None:
    """The box from the first to the last rule with the same width as the rule next to a caption."""
    low, high = space
    rules = [box for box in _rules(drawings) if low <= box[1] and box[3] <= high]
    near = [box for box in rules if box[0] < caption[2] and box[2] > caption[0] and _distance(box, caption) <= _TO_RULE]
    if not near:
        return None
    first = min(near, key=lambda box: (round(_distance(box, caption)), box[0] - box[2]))
    alike = [box for box in rules if abs(box[0] - first[0]) <= _SAME_EDGE and abs(box[2] - first[2]) <= _SAME_EDGE]
    cells = [box for box in drawings if box[3] - box[1] > _RULE]
    grown: Box | None = None  # all connected cells, starting from those at the rule
    for _ in range(_GROWTH):
        left, bottom, right, top = grown or first
        reach = (left - _RULE, bottom - _RULE, right + _RULE, top + _RULE)
        touching = [box for box in cells if _overlaps(box, reach)]
        if not touching or enclosing_box(touching) == grown:
            break
        grown = enclosing_box(touching if grown is None else [grown, *touching])
    whole = grown or enclosing_box(alike)
    return whole if whole[3] - whole[1] > _LEAST_TABLE else None


def _rules(drawings: Sequence[Box]) -> list[Box]:
    """The horizontal rules, joined across neighbouring cells; the edges of a cell count as rules."""
    edges: list[Box] = []
    for left, bottom, right, top in drawings:
        edges += [(left, bottom, right, top)] if top - bottom <= _RULE else [(left, y, right, y) for y in (bottom, top)]
    joined: list[Box] = []
    for edge in sorted(edges, key=lambda box: (round(box[1]), box[0])):
        last = joined[-1] if joined else None
        if last and abs(edge[1] - last[1]) <= _RULE and edge[0] - last[2] <= _RULE:
            joined[-1] = enclosing_box([last, edge])
        else:
            joined.append(edge)
    return [box for box in joined if box[2] - box[0] >= _LEAST_RULE]


def _distance(box: Box, caption: Box) -> float:
    return max(box[1] - caption[3], caption[1] - box[3])


def _overlaps(box: Box, area: Box) -> bool:
    return box[0] < area[2] and box[2] > area[0] and box[1] < area[3] and box[3] > area[1]


def _clip(box: Box, area: Box) -> Box:
    return max(box[0], area[0]), max(box[1], area[1]), min(box[2], area[2]), min(box[3], area[3])


def enclosing_box(boxes: Sequence[Box]) -> Box:
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)
