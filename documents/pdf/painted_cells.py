"""Detects tables whose cells are painted as rectangles, as browsers and word processors print them.

The parser finds such tables only in part. Here rectangles side by side are a row, and rows of the same width below each
other are a table; its words are those inside of each rectangle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from .dehyphenation import joined
from .pages import LEAST_ROWS, Cell, Grid, Table, TextRun, table_markdown

_MAX_CELLS: Final = 5_000  # on a page
_LEAST_WIDTH: Final = 12.0
_LEAST_HEIGHT: Final = 7.0
_LARGEST: Final = 0.6  # of the page: more is its background
_CLOSE: Final = 2.5  # points between edges that are the same
_LEAST_FILLED: Final = 0.5
_LONGEST_CELL: Final = 2_000  # characters


def painted_grids(rectangles: Iterable[dict[str, Any]], runs: Sequence[TextRun], page: float) -> list[Grid]:
    """The grids with words in them among the rectangles of a page, whose area is `page`."""
    return [grid for grid in _grids(_rows(_cells(rectangles, page))) if _is_filled(grid, runs)]


def grid_table(grid: Grid, runs: Sequence[TextRun], lost: bool) -> Table:
    """The words in the cells of a grid as a table; `lost` means that ligatures are missing."""
    box = grid_box(grid)
    inside = [run for run in runs if box.holds(run)]
    rows = [[_words(cell, inside, lost)[:_LONGEST_CELL] for cell in row] for row in grid]
    return replace(box, markdown=table_markdown(rows))


def grid_box(grid: Grid) -> Table:
    """The edges of a grid, as a table without words."""
    x, y = grid[0][0].left, grid[-1][0].bottom
    return Table(x, y, grid[0][-1].right - x, grid[0][0].top - y, "")


def _is_filled(grid: Grid, runs: Sequence[TextRun]) -> bool:
    box = grid_box(grid)
    inside = [run for run in runs if box.holds(run)]
    cells = [_box(cell) for row in grid for cell in row]
    return sum(any(cell.holds(run) for run in inside) for cell in cells) >= _LEAST_FILLED * len(cells)


def _box(cell: Cell) -> Table:
    return Table(cell.left, cell.bottom, cell.right - cell.left, cell.top - cell.bottom, "")


def _cells(rectangles: Iterable[dict[str, Any]], page: float) -> list[Cell]:
    """The rectangles that may be cells, each once: a cell is painted several times if it has a border."""
    found: dict[tuple[int, ...], Cell] = {}
    for item in islice(rectangles, 4 * _MAX_CELLS):
        x, y, width, height = item["bbox"]
        if width >= _LEAST_WIDTH and height >= _LEAST_HEIGHT and width * height <= _LARGEST * page:
            edges = (x, y, x + width, y + height)
            found.setdefault(tuple(round(edge / _CLOSE) for edge in edges), Cell(*edges))
    return list(islice(found.values(), _MAX_CELLS))


def _rows(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells side by side, from top to bottom."""
    rows: list[list[Cell]] = []
    for cell in sorted(cells, key=lambda cell: (-round(cell.top / _CLOSE), -round(cell.bottom / _CLOSE), cell.left)):
        last = rows[-1][-1] if rows else None
        beside = last and _same(last.top, cell.top) and _same(last.bottom, cell.bottom)
        if last and beside and _same(last.left, cell.left):
            continue
        if last and beside and _same(last.right, cell.left):
            rows[-1].append(cell)
        else:
            rows.append([cell])
    return [row for row in rows if len(row) >= LEAST_ROWS]


def _grids(rows: Sequence[list[Cell]]) -> list[Grid]:
    """Rows below each other with the same edges."""
    tables: list[list[list[Cell]]] = []
    for row in rows:
        above = next((table for table in reversed(tables) if _below(table[-1], row)), None)
        if above is not None:
            above.append(row)
        else:
            tables.append([row])
    return [tuple(map(tuple, table)) for table in tables if len(table) >= LEAST_ROWS]


def _below(above: Sequence[Cell], row: Sequence[Cell]) -> bool:
    touches = _same(above[0].bottom, row[0].top) and len(above) == len(row)
    return touches and all(_same(one.left, other.left) for one, other in zip(above, row, strict=True))


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= _CLOSE


def _words(cell: Cell, runs: Sequence[TextRun], lost: bool) -> str:
    box = _box(cell)
    text = ""
    before: TextRun | None = None
    # In reading order; runs on one line differ by less than half a letter.
    for run in sorted(runs, key=lambda run: (-round(run.y / max(1.0, 0.5 * run.size)), run.x)):
        if not box.holds(run):
            continue
        if before is None or run.x < before.right - before.size:
            text = f"{text} {run.text}"
        else:
            text = joined(text, run.text, before.gap_to(run), lost)
        before = run
    return re.sub(r"\s+", " ", text).strip()
