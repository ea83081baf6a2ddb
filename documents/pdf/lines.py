"""Joins text runs into lines in reading order, column by column, leaving out running heads, feet and page numbers.

The parser finds tables only by their rules. Here a table without rules is at least three rows, close together, of three
or more cells, two of them numbers, whose cells share columns. The rows above them are its header.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ...text.words import one_line
from .dehyphenation import find_damaged_words, join_runs, repair_words
from .pages import Page, Table, TextRun, read_grid, table_markdown

_COLUMN_GAP = 0.7  # times the letter size: smaller gaps do not separate columns
_COLUMN = 0.25  # of the page width: the minimum length of a column's line
_SMALL = 0.85  # times the letter size: smaller runs may be superscript or subscript
_MARGIN = 0.1  # of the page height: the margins with running heads and page numbers
ON_PAGES = 3  # a line at the top of this many pages is a running head
_LINES_ENOUGH = 8  # minimum lines of a column
_PAGE_NUMBER = re.compile(r"[-–—\s]*(?:page\s*)?\d{1,4}(?:\s*(?:/|of)\s*\d{1,4})?[-–—\s]*", re.IGNORECASE)
_CROSSING = 0.35  # of the lines: if more cross the middle, the page has one column


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, or a whole table; `bold` if all letters are, `code` if they are monospaced."""

    page: int
    x: float
    y: float
    right: float
    size: float
    bold: bool
    text: str
    table: bool = False
    code: bool = False


def read_lines(pages: Sequence[Page], lost: bool) -> list[Line]:
    """The lines of all pages in reading order; `lost` means that ligatures are missing."""
    found = [_page_lines(number, page, lost) for number, page in enumerate(pages)]
    seen: Counter[str] = Counter()  # lines at the same edge of several pages, ignoring numbers
    for page, lines in zip(pages, found, strict=True):
        seen.update({without_numbers(line.text) for line in lines if _at_edge(page, line)})
    running = {pattern for pattern, count in seen.items() if count >= ON_PAGES and len(pattern) < 200}
    kept = [
        line
        for page, lines in zip(pages, found, strict=True)
        for line in lines
        if not (_at_edge(page, line) and (without_numbers(line.text) in running or _PAGE_NUMBER.fullmatch(line.text)))
        and not (line.text == str(line.page + 1) and line.y == min(other.y for other in lines))
    ]
    repairs = find_damaged_words(line.text for line in kept) if lost else {}
    return [replace(line, text=repair_words(line.text, repairs)) for line in kept] if repairs else kept


def _page_lines(number: int, page: Page, lost: bool) -> list[Line]:
    ruled = [*page.tables, *(read_grid(grid, page.runs, lost) for grid in page.grids)]
    rows = _rows([run for run in page.runs if not any(table.holds(run) for table in ruled)])
    tables = [_table_line(number, table) for table in ruled]
    gutter = _gutter(page, rows)
    if gutter is None:
        rows, found = take_tables(rows)
        lines = [_line(number, row, lost) for row in rows]
        lines += [*tables, *(_table_line(number, table) for table in found)]
        return sorted(lines, key=lambda line: -line.y)
    rows, wide = take_wide_tables(rows, lambda row: _split_at_gutter(row, gutter))
    tables += [_table_line(number, table) for table in wide]
    parts = [part for row in rows for part in _split_at_gutter(row, gutter)]
    left = [part for part in parts if max(run.right for run in part) <= gutter]
    right = [part for part in parts if part[0].x >= gutter]
    for side in (left, right, [part for part in parts if _crosses(part, gutter)]):
        side, found = take_tables(side)
        tables += [*(_line(number, part, lost) for part in side), *(_table_line(number, table) for table in found)]
    # Between full-width lines, the left column and then the right one.
    ordered: list[Line] = []
    columns: tuple[list[Line], list[Line]] = ([], [])
    for line in sorted(tables, key=lambda line: -line.y):
        if line.right <= gutter or line.x >= gutter:
            columns[line.right > gutter].append(line)
        else:
            ordered += [*columns[0], *columns[1], line]
            columns = ([], [])
    return [*ordered, *columns[0], *columns[1]]


def _table_line(number: int, table: Table) -> Line:
    return Line(number, table.x, table.y, table.x + table.width, 0.0, False, table.markdown, table=True)


def _rows(runs: Sequence[TextRun]) -> list[list[TextRun]]:
    """Rows of runs on one baseline, from left to right; superscripts and subscripts join the row they touch."""
    rows: list[list[TextRun]] = []
    heads: list[TextRun] = []
    for run in sorted(runs, key=lambda run: (-run.size, -run.y, run.x)):
        for head, row in zip(reversed(heads), reversed(rows), strict=True):
            large, room = run.size > _SMALL * head.size, row[0].size
            if abs(run.middle - head.middle) < (0.35 if large else 0.75) * head.height and (
                large or any(other.x - room < run.right and run.x < other.right + room for other in row)
            ):
                row.append(run)
                break
        else:
            rows.append([run])
            heads.append(run)
    ordered = sorted(zip(heads, rows, strict=True), key=lambda pair: (-pair[0].middle, pair[0].x))
    return [sorted(row, key=lambda run: run.x) for _, row in ordered]


def _gutter(page: Page, rows: Sequence[Sequence[TextRun]]) -> float | None:
    """The position between two columns; None if the page has one column."""
    middle = [page.width * step / 200 for step in range(80, 121, 2)]
    at = min(
        middle, key=lambda place: sum(_crosses(part, place) for row in rows for part in _split_at_gutter(row, place))
    )
    parts = [part for row in rows for part in _split_at_gutter(row, at)]
    inside = [part for part in parts if not _crosses(part, at)]
    sides = [[part for part in inside if (part[0].x >= at) == right] for right in (False, True)]
    across = len(parts) - len(inside)
    if min(map(len, sides)) < _LINES_ENOUGH or across > _CROSSING * len(parts):
        return None
    # Figures and tables also leave the middle free, but without lines as long as a column is wide.
    wide = sum(max(run.right for run in part) - part[0].x > _COLUMN * page.width for side in sides for part in side)
    return at if 2 * wide > sum(map(len, sides)) else None


def _crosses(part: Sequence[TextRun], at: float) -> bool:
    return part[0].x < at < max(run.right for run in part)


def _split_at_gutter(row: Sequence[TextRun], at: float) -> list[list[TextRun]]:
    left = [run for run in row if run.x + run.width / 2 < at]
    right = [run for run in row if run.x + run.width / 2 >= at]
    if not left or not right:
        return [list(row)]
    end, begin = max(run.right for run in left), min(run.x for run in right)
    if end > at or begin < at or begin - end < _COLUMN_GAP * row[0].size:
        return [list(row)]
    return [left, right]


def _line(number: int, runs: Sequence[TextRun], lost: bool) -> Line:
    weight: Counter[float] = Counter()
    text = ""
    for before, run in zip((None, *runs), runs, strict=False):
        weight[run.size] += len(run.text.strip())
        text = run.text if before is None else join_runs(text, run.text, before.gap_to(run), lost)
    size = weight.most_common(1)[0][0]
    letters = [run for run in runs if any(map(str.isalnum, run.text))]
    bold = bool(letters) and all(run.bold for run in letters)
    code = bool(letters) and all(run.mono for run in letters)
    right, low = max(run.right for run in runs), min(run.y for run in runs if run.size == size)
    return Line(number, runs[0].x, low, right, round(size, 1), bold, one_line(text), code=code)


def _at_edge(page: Page, line: Line) -> bool:
    return not line.table and not _MARGIN * page.height < line.y < (1 - _MARGIN) * page.height


def without_numbers(text: str) -> str:
    """The text with numbers removed, so that "Page 3 of 9" equals "Page 4 of 9"."""
    return re.sub(r"\d+", "#", text).casefold().strip()


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
    width, height = max(run.right for run in runs) - x, max(run.top for run in runs) - y
    return Table(x, y, width, height, table_markdown(lines))
