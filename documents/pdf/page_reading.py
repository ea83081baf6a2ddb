"""Reads the pages of a PDF with pdf-oxide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .pages import FEW_LETTERS, LEAST_ROWS, LONGEST_CELL, Page, Table, TextRun, table_markdown
from .painted_cells import grid_box, painted_grids

# Text this much taller than its letters runs up the margin (the stamp of a preprint server).
_UPRIGHT = 3.0
_LEAST_FILLED = 0.5


def read_page(document: Any, number: int) -> Page:
    """Read the page `number` (0, 1 ...) of an open document; raises the parser's errors."""
    runs = tuple(
        TextRun(x, y, width, height, span.font_size or height, bool(span.is_bold), bool(span.is_monospace), text)
        for span in document.extract_spans(number)
        if (text := _clean(span.text)).strip()
        for x, y, width, height in [span.bbox]
        if height < _UPRIGHT * max(span.font_size, 1.0) or len(text) < _UPRIGHT
    )
    width, height = _size(document, number, runs)
    grids = tuple(painted_grids(document.extract_rects(number), runs, width * height))
    boxes = [grid_box(grid) for grid in grids]
    found = (table for item in document.extract_tables(number) if (table := _table(item)) is not None)
    tables = tuple(table for table in found if not any(table.overlaps(box) for box in boxes))
    # Only needed for pages without text; counting images takes as long as reading text.
    lettered = sum(character.isalpha() for run in runs for character in run.text) >= FEW_LETTERS
    return Page(width, height, runs, tables, 0 if lettered else _pictures(document, number), grids)


def _pictures(document: Any, number: int) -> int:
    try:
        return len(document.page_images(number))
    except (RuntimeError, OSError):
        return 0


def _size(document: Any, number: int, runs: Sequence[TextRun]) -> tuple[float, float]:
    """Width and height of a page; estimated from its content if a damaged file does not say."""
    try:
        page = document[number]  # the document's own media box takes fifty times as long
        return float(page.width), float(page.height)
    except (RuntimeError, OSError):
        return max((run.right for run in runs), default=0.0), max((run.y + run.height for run in runs), default=0.0)


def _clean(text: str) -> str:
    """The text without characters that represent no letter."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f\u200b\u2060\ufeff]", "", text)


def _table(found: dict[str, Any]) -> Table | None:
    """The table as markdown; None if the library's detection was wrong."""
    rows = [[_cell(cell) for cell in row["cells"]] for row in found["rows"]]
    columns = max((len(row) for row in rows), default=0)
    cells = [cell for row in rows for cell in row]
    filled = sum(bool(cell) for cell in cells)
    if len(rows) < LEAST_ROWS or columns < LEAST_ROWS or filled <= _LEAST_FILLED * len(rows) * columns:
        return None
    if max(map(len, cells)) > LONGEST_CELL:
        return None
    x, y, width, height = found["bbox"]
    return Table(x, y, width, height, table_markdown(rows))


def _cell(cell: dict[str, Any]) -> str:
    return re.sub(r"\s+", " ", _clean(str(cell.get("text") or ""))).strip()
