"""Joins text runs to lines in reading order, column by column, without running heads and feet and page numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...text.words import one_line
from .dehyphenation import find_damaged_words, join_runs, repair_words
from .pages import Page, Table, TextRun, read_grid
from .table_detection import take_tables, take_wide_tables

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
