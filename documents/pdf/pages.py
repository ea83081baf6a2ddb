"""What is read from a page of a PDF: text runs with position and font, and tables.

Lengths are points, 72 to the inch; y grows upwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_ROWS = 2
FEW_LETTERS = 30
_BOLD = 1.165  # approximate width relative to plain letters
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

    def gap_to(self, run: TextRun) -> float:
        """The space before the next run in letter sizes, corrected for the width of bold letters."""
        gap = (run.x - self.right) / run.size
        return gap / _BOLD if self.bold and run.bold else gap


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

    def overlaps(self, other: Table) -> bool:
        """Whether the two share a part of the page."""
        across = self.x < other.x + other.width and other.x < self.x + self.width
        return across and self.y < other.y + other.height and other.y < self.y + self.height


@dataclass(frozen=True, slots=True)
class Cell:
    """A painted rectangle that is a cell of a table."""

    left: float
    bottom: float
    right: float
    top: float


Grid = tuple[tuple[Cell, ...], ...]  # rows of cells with the same edges, from top to bottom


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
