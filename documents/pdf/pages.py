"""Reads the pages of a PDF: text runs, and tables with rules or painted cells. Lengths are points, y grows upwards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from ...text.words import one_line
from .dehyphenation import join_runs

LEAST_ROWS = 2
FEW_LETTERS = 30
_BOLD = 1.165  # approximate width relative to plain letters
LONGEST_CELL = 200  # characters; an apparent table with longer cells is running text


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A part of a page; `y` is the lower edge."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def top(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class TextRun(Rectangle):
    """Text in one font."""

    size: float
    bold: bool
    mono: bool
    text: str

    def gap_to(self, run: TextRun) -> float:
        """The space before the next run in letter sizes, corrected for the width of bold letters."""
        gap = (run.x - self.right) / run.size
        return gap / _BOLD if self.bold and run.bold else gap


@dataclass(frozen=True, slots=True)
class Table(Rectangle):
    """A table as markdown, and its bounding box."""

    markdown: str = ""

    def holds(self, run: TextRun) -> bool:
        center = run.x + run.width / 2
        return self.x - 1 <= center <= self.right + 1 and self.y - 1 <= run.middle <= self.top + 1

    def overlaps(self, other: Table) -> bool:
        return self.x < other.right and other.x < self.right and self.y < other.top and other.y < self.top


Grid = tuple[tuple[Table, ...], ...]  # rows of painted cells with the same edges, from top to bottom


@dataclass(frozen=True, slots=True)
class Page:
    """One page; `pictures` counts its images if it has hardly any text, `grids` are tables with painted cells."""

    width: float
    height: float
    runs: tuple[TextRun, ...]
    tables: tuple[Table, ...]
    pictures: int
    grids: tuple[Grid, ...] = ()


def table_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as a markdown table with the first row as its header."""
    columns = max(len(row) for row in rows)
    escaped = [[cell.replace("|", "\\|") for cell in row] + [""] * (columns - len(row)) for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in escaped]
    lines.insert(1, "|" + "---|" * columns)
    return "\n".join(lines)


_MAX_CELLS: Final = 5_000  # on a page
_LEAST_WIDTH: Final = 12.0
_LEAST_HEIGHT: Final = 7.0
_LARGEST: Final = 0.6  # share of the page: larger rectangles are its background
_CLOSE: Final = 2.5  # points: edges closer than this are the same
_LEAST_FILLED: Final = 0.5
_LONGEST_CELL: Final = 2_000  # characters


def find_grids(rectangles: Iterable[dict[str, Any]], runs: Sequence[TextRun], page: float) -> list[Grid]:
    """Find the grids that contain words among the rectangles of a page with area `page`."""
    filled: list[Grid] = []
    # Each cell once: it is painted several times if it has a border.
    found: dict[tuple[int, ...], Table] = {}
    for item in islice(rectangles, 4 * _MAX_CELLS):
        x, y, width, height = item["bbox"]
        if width >= _LEAST_WIDTH and height >= _LEAST_HEIGHT and width * height <= _LARGEST * page:
            edges = tuple(round(edge / _CLOSE) for edge in (x, y, x + width, y + height))
            found.setdefault(edges, Table(x, y, width, height))
    for grid in _grids(_rows(list(islice(found.values(), _MAX_CELLS)))):
        inside = [run for run in runs if grid_box(grid).holds(run)]
        cells = [cell for row in grid for cell in row]
        if sum(any(cell.holds(run) for run in inside) for cell in cells) >= _LEAST_FILLED * len(cells):
            filled.append(grid)
    return filled


def read_grid(grid: Grid, runs: Sequence[TextRun], lost: bool) -> Table:
    """The words in the cells of a grid as a table; `lost` means that ligatures are missing."""
    box = grid_box(grid)
    inside = [run for run in runs if box.holds(run)]
    rows = [[_words(cell, inside, lost)[:_LONGEST_CELL] for cell in row] for row in grid]
    return replace(box, markdown=table_markdown(rows))


def grid_box(grid: Grid) -> Table:
    """The edges of a grid, as a table without words."""
    x, y = grid[0][0].x, grid[-1][0].y
    return Table(x, y, grid[0][-1].right - x, grid[0][0].top - y)


def _rows(cells: Sequence[Table]) -> list[list[Table]]:
    rows: list[list[Table]] = []
    for cell in sorted(cells, key=lambda cell: (-round(cell.top / _CLOSE), -round(cell.y / _CLOSE), cell.x)):
        last = rows[-1][-1] if rows else None
        beside = last and _is_same(last.top, cell.top) and _is_same(last.y, cell.y)
        if last and beside and _is_same(last.x, cell.x):
            continue
        if last and beside and _is_same(last.right, cell.x):
            rows[-1].append(cell)
        else:
            rows.append([cell])
    return [row for row in rows if len(row) >= LEAST_ROWS]


def _grids(rows: Sequence[list[Table]]) -> list[Grid]:
    tables: list[list[list[Table]]] = []
    for row in rows:
        for table in reversed(tables):
            touches = _is_same(table[-1][0].y, row[0].top) and len(table[-1]) == len(row)
            if touches and all(_is_same(one.x, other.x) for one, other in zip(table[-1], row, strict=True)):
                table.append(row)
                break
        else:
            tables.append([row])
    return [tuple(map(tuple, table)) for table in tables if len(table) >= LEAST_ROWS]


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= _CLOSE


def _words(cell: Table, runs: Sequence[TextRun], lost: bool) -> str:
    text = ""
    before: TextRun | None = None
    # In reading order; runs on one line differ by less than half a letter.
    for run in sorted(runs, key=lambda run: (-round(run.y / max(1.0, 0.5 * run.size)), run.x)):
        if not cell.holds(run):
            continue
        if before is None or run.x < before.right - before.size:
            text = f"{text} {run.text}"
        else:
            text = join_runs(text, run.text, before.gap_to(run), lost)
        before = run
    return one_line(text)


# Text this much taller than its letters runs vertically in the margin (the stamp of a preprint server).
_UPRIGHT = 3.0
_LEAST_CELLS_FILLED = 0.5


def read_page(document: Any, number: int) -> Page:
    """Read the page `number` (0, 1 ...) of an open document; raises the parser's errors."""
    runs = tuple(
        TextRun(x, y, width, height, span.font_size or height, bool(span.is_bold), bool(span.is_monospace), text)
        for span in document.extract_spans(number)
        if (text := _clean(span.text)).strip()
        for x, y, width, height in [span.bbox]
        if height < _UPRIGHT * max(span.font_size, 1.0) or len(text) < _UPRIGHT
    )
    try:
        page = document[number]  # the document's own media box takes fifty times as long
        width, height = float(page.width), float(page.height)
    except (RuntimeError, OSError):  # a damaged file does not say so
        width = max((run.right for run in runs), default=0.0)
        height = max((run.top for run in runs), default=0.0)
    grids = tuple(find_grids(document.extract_rects(number), runs, width * height))
    boxes = [grid_box(grid) for grid in grids]
    tables: list[Table] = []
    for found in document.extract_tables(number):
        rows = [[one_line(_clean(str(cell.get("text") or ""))) for cell in row["cells"]] for row in found["rows"]]
        columns, cells = max(map(len, rows), default=0), [cell for row in rows for cell in row]
        filled = sum(map(bool, cells))
        if min(len(rows), columns) < LEAST_ROWS or filled <= _LEAST_CELLS_FILLED * len(rows) * columns:
            continue  # the library's detection was wrong
        table = replace(Table(*found["bbox"]), markdown=table_markdown(rows))
        if max(map(len, cells)) <= LONGEST_CELL and not any(table.overlaps(box) for box in boxes):
            tables.append(table)
    # Only needed for pages without text; counting images takes as long as reading text.
    lettered = sum(character.isalpha() for run in runs for character in run.text) >= FEW_LETTERS
    pictures = 0
    if not lettered:
        with suppress(RuntimeError, OSError):
            pictures = len(document.page_images(number))
    return Page(width, height, runs, tuple(tables), pictures, grids)


def _clean(text: str) -> str:
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f\u200b\u2060\ufeff]", "", text)
