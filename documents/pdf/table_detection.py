"""Detects tables without rules, as in most papers: rows of numbers with aligned cells.

The parser finds tables only by their rules. Here a table is at least three rows, close together, of three or more
cells, two of them numbers, whose cells share columns. The rows above them are its header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .pages import Table, TextRun, table_markdown

CAPTION = re.compile(r"^(?:supplement\w* )?(?:fig(?:ure|\.)?|table|algorithm|listing|scheme)\s*\w?\d", re.IGNORECASE)
_CELL_GAP = 0.6  # times the letter size: the minimum gap between two cells
_LEAST_ROWS = 3  # minimum rows of numbers
_LEAST_CELLS = 3
_LEAST_FIGURES = 2  # minimum number cells per row
_FALL = 2.3  # times the letter size: rows further apart are not in one table
_HEAD_ROWS = 4
_BETWEEN = 2  # rows without numbers between two rows with them: group names, wrapped cells
_FIGURE = re.compile(r"[(\[<>≤≥~±+\-−–]?\s*(?:[$€£]\s*)?[.\d]")
_WORDS_IN_CELL = 6  # more words are running text next to a table or above it
_WORDS_IN_ROW = 40


@dataclass(frozen=True, slots=True)
class _Cell:
    left: float
    right: float
    text: str


@dataclass(frozen=True, slots=True)
class _Row:
    runs: Sequence[TextRun]
    cells: tuple[_Cell, ...]

    @property
    def y(self) -> float:
        return self.runs[0].y

    @property
    def size(self) -> float:
        return self.runs[0].size

    @property
    def figures(self) -> bool:
        figures = sum(bool(_FIGURE.match(cell.text)) for cell in self.cells)
        return len(self.cells) >= _LEAST_CELLS and figures >= _LEAST_FIGURES and not self.wordy

    @property
    def wordy(self) -> bool:  # running text
        return sum(len(cell.text.split()) for cell in self.cells) > _WORDS_IN_ROW

    @property
    def short(self) -> bool:  # no cell has more words than a header cell
        return max(len(cell.text.split()) for cell in self.cells) <= _WORDS_IN_CELL


def take_tables(rows: Sequence[Sequence[TextRun]]) -> tuple[list[list[TextRun]], list[Table]]:
    """Split the rows of one column, from top to bottom, into running text and tables."""
    made = [_row(runs) for runs in rows]
    taken: set[int] = set()
    tables: list[Table] = []
    groups: list[tuple[int, int]] = []  # first and last row of numbers of each candidate
    group: list[int] = []
    for index, row in enumerate([*made, None]):
        apart = row is None or not group or not _near(made[index - 1], row) or index - group[-1] > _BETWEEN + 1
        if apart or (row and row.wordy):
            groups += [(group[0], group[-1])] if len(group) >= _LEAST_ROWS else []
            group = []
        if row and row.figures:
            group.append(index)
    for first, last in groups:
        columns = _columns(made[first : last + 1])
        if columns is None:
            continue
        head = _head(made, first, max(taken, default=-1) + 1, columns)
        tables.append(_table(made[head : last + 1], columns, heads=first - head))
        taken.update(range(head, last + 1))
    return [list(runs) for index, runs in enumerate(rows) if index not in taken], tables


def take_wide_tables(
    rows: Sequence[Sequence[TextRun]], parted: Callable[[Sequence[TextRun]], list[list[TextRun]]]
) -> tuple[list[list[TextRun]], list[Table]]:
    """Like `take_tables` for a page of two columns, including tables across both.

    `parted` splits a row at the gutter. Numbers to its right without a label belong to the row on its left; of two
    tables side by side, each has its own labels.
    """
    across: set[int] = set()
    for index, parts in enumerate(map(parted, rows)):
        if len(parts) > 1:  # the part right of the gutter begins with a number, and the left one is a table row too
            left, right = map(_row, parts)
            across |= {index} if left.short and right.short and _FIGURE.match(right.cells[0].text) else set()
    candidates = {near for index in across for near in range(max(0, index - _HEAD_ROWS), index + 1)}
    kept: list[list[TextRun]] = []
    tables: list[Table] = []
    block: list[list[TextRun]] = []
    for index, runs in enumerate([*rows, []]):
        if index in candidates:
            block.append(list(runs))
            continue
        rest, found = take_tables(block)
        kept += [*rest, list(runs)] if runs else rest
        tables += found
        block = []
    return kept, tables


def _row(runs: Sequence[TextRun]) -> _Row:
    cells: list[_Cell] = []
    for run in runs:
        text = run.text.strip()
        # A blank at the end of a run is spacing, not text.
        blank = (len(run.text) - len(run.text.rstrip())) * 0.25 * run.size
        right = max(run.x, run.right - blank)
        if cells and run.x - cells[-1].right < _CELL_GAP * run.size:
            space = " " if run.x - cells[-1].right > 0.1 * run.size else ""
            cells[-1] = _Cell(cells[-1].left, max(right, cells[-1].right), f"{cells[-1].text}{space}{text}")
        else:
            cells.append(_Cell(run.x, right, text))
    return _Row(runs, tuple(cells))


def _near(above: _Row, below: _Row) -> bool:
    return 0 < above.y - below.y < _FALL * max(above.size, below.size)


def _columns(rows: Sequence[_Row]) -> list[tuple[float, float]] | None:
    """The column positions in the rows of numbers; None if the rows share none."""
    figures = [row for row in rows if row.figures]
    spans: list[tuple[float, float]] = []
    for left, right in sorted((cell.left, cell.right) for row in figures for cell in row.cells):
        if spans and left < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], right))
        else:
            spans.append((left, right))
    if len(spans) < _LEAST_CELLS:
        return None
    # Cells across two columns, or numbers that merely follow each other, make columns merge.
    distinct = sum(all(_at(spans, one) != _at(spans, other) for one, other in pairwise(row.cells)) for row in figures)
    return spans if distinct >= 0.8 * len(figures) and distinct >= _LEAST_ROWS else None


def _at(columns: Sequence[tuple[float, float]], cell: _Cell) -> int:
    """The column with the largest overlap with a cell, or the nearest if none overlaps."""
    return max(
        range(len(columns)), key=lambda index: min(cell.right, columns[index][1]) - max(cell.left, columns[index][0])
    )


def _head(rows: Sequence[_Row], first: int, least: int, columns: Sequence[tuple[float, float]]) -> int:
    head = first
    left, right = columns[0][0], columns[-1][1]
    for index in range(first - 1, max(least, first - _HEAD_ROWS) - 1, -1):
        row = rows[index]
        inside = left - 4 * row.size <= row.cells[0].left and row.cells[-1].right <= right + 4 * row.size
        if not _near(row, rows[index + 1]) or not row.short or not inside or CAPTION.match(row.cells[0].text):
            break
        if len(row.cells) > 1:
            head = index
        elif row.cells[0].right - row.cells[0].left > 0.5 * (right - left):
            break
    return head


def _table(rows: Sequence[_Row], columns: Sequence[tuple[float, float]], *, heads: int) -> Table:
    lines: list[list[str]] = []
    for number, row in enumerate(rows):
        line = [""] * len(columns)
        for cell in row.cells:
            place = _at(columns, cell)
            line[place] = f"{line[place]} {cell.text}".strip()
        # Rows with more than one cell above the numbers form one header; a group name stays a row.
        if lines and number < heads and len(row.cells) > 1:
            lines[0] = [f"{above} {below}".strip() for above, below in zip(lines[0], line, strict=True)]
        else:
            lines.append(line)
    runs = [run for row in rows for run in row.runs]
    x, y = min(run.x for run in runs), min(run.y for run in runs)
    width, height = max(run.right for run in runs) - x, max(run.y + run.height for run in runs) - y
    return Table(x, y, width, height, table_markdown(lines))
