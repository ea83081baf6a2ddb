"""Reads the pages of a PDF with pdf-oxide: text runs with position and font, and tables.

Lengths are points, 72 to the inch; y grows upwards.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Text this much taller than its letters runs up the margin (the stamp of a preprint server).
_UPRIGHT = 3.0
LEAST_ROWS = 2
FEW_LETTERS = 30
_LEAST_FILLED = 0.5
LONGEST_CELL = 200  # characters; an apparent table with longer cells is running text


@dataclass(frozen=True, slots=True)
class TextRun:
    """Text in one font; `y` is the lower edge."""

    x: float
    y: float
    width: float
    height: float
    size: float
    bold: bool
    mono: bool
    text: str

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.width

    @property
    def middle(self) -> float:
        """The vertical middle."""
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Table:
    """A table as markdown, and its bounding box."""

    x: float
    y: float
    width: float
    height: float
    markdown: str

    def holds(self, run: TextRun) -> bool:
        """Whether the run lies inside."""
        center = run.x + run.width / 2
        return self.x - 1 <= center <= self.x + self.width + 1 and self.y - 1 <= run.middle <= self.y + self.height + 1


@dataclass(frozen=True, slots=True)
class Page:
    """One page; `pictures` counts its images if it has hardly any text."""

    width: float
    height: float
    runs: tuple[TextRun, ...]
    tables: tuple[Table, ...]
    pictures: int


def read_page(document: Any, number: int) -> Page:
    """Read the page `number` (0, 1 ...) of an open document; raises the parser's errors."""
    runs = tuple(
        TextRun(x, y, width, height, span.font_size or height, bool(span.is_bold), bool(span.is_monospace), text)
        for span in document.extract_spans(number)
        if (text := _clean(span.text)).strip()
        for x, y, width, height in [span.bbox]
        if height < _UPRIGHT * max(span.font_size, 1.0) or len(text) < _UPRIGHT
    )
    tables = tuple(table for found in document.extract_tables(number) if (table := _table(found)) is not None)
    width, height = _size(document, number, runs)
    # Only needed for pages without text; counting images takes as long as reading text.
    lettered = sum(character.isalpha() for run in runs for character in run.text) >= FEW_LETTERS
    return Page(width, height, runs, tables, 0 if lettered else _pictures(document, number))


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


def table_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as a markdown table with the first row as its header."""
    columns = max(len(row) for row in rows)
    escaped = [[cell.replace("|", "\\|") for cell in row] + [""] * (columns - len(row)) for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in escaped]
    lines.insert(1, "|" + "---|" * columns)
    return "\n".join(lines)


def _cell(cell: dict[str, Any]) -> str:
    return re.sub(r"\s+", " ", _clean(str(cell.get("text") or ""))).strip()
