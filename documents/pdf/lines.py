"""Runs of text joined to lines, in the order in which one reads them: columns one after the other.

Kept out are what stands at the head or foot of page after page, and page numbers, also below a foot that is high.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .dehyphenation import damaged_words, joined, with_words
from .pages import Page, Table, TextRun
from .table_detection import take_tables, take_wide_tables

_WORD_GAP = 0.16  # times the letter size: less is no gap
_COLUMN_GAP = 0.7  # times the letter size: less does not part two columns
_COLUMN = 0.25  # of the page's width: a line of a column is longer
_BOLD = 1.165  # times as wide as plain letters, about
_SMALL = 0.85  # times the letter size: smaller runs may be raised or lowered
_MARGIN = 0.1  # of the page's height: where running heads and page numbers stand
ON_PAGES = 3  # a line at the head of so many pages is a running head
_LINES_ENOUGH = 8  # for a column
_CROSSING = 0.35  # of the lines: more across the middle, and the page has one column


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, or a table in one piece; `bold` when every letter is, `code` when they are of one width."""

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
    """The lines of all pages in reading order; `lost` says that ligatures are missing."""
    found = [_page_lines(number, page, lost) for number, page in enumerate(pages)]
    running = _running(pages, found)
    kept = [
        line
        for page, lines in zip(pages, found, strict=True)
        for line in lines
        if not (_at_edge(page, line) and (without_numbers(line.text) in running or is_number(line.text)))
        and not (line.text == str(line.page + 1) and line.y == min(other.y for other in lines))
    ]
    mended = damaged_words(line.text for line in kept) if lost else {}
    return [replace(line, text=with_words(line.text, mended)) for line in kept] if mended else kept


def _page_lines(number: int, page: Page, lost: bool) -> list[Line]:
    rows = _rows([run for run in page.runs if not any(table.holds(run) for table in page.tables)])
    tables = [_table_line(number, table) for table in page.tables]
    gutter = _gutter(page, rows)
    if gutter is None:
        rows, found = take_tables(rows)
        lines = [_line(number, row, lost) for row in rows]
        lines += [*tables, *(_table_line(number, table) for table in found)]
        return sorted(lines, key=lambda line: -line.y)
    rows, wide = take_wide_tables(rows, lambda row: _parted(row, gutter))
    tables += [_table_line(number, table) for table in wide]
    parts = [part for row in rows for part in _parted(row, gutter)]
    for side in _sides(parts, gutter):
        side, found = take_tables(side)
        tables += [*(_line(number, part, lost) for part in side), *(_table_line(number, table) for table in found)]
    return list(_by_columns(tables, gutter))


def _sides(parts: Sequence[list[TextRun]], gutter: float) -> tuple[list[list[TextRun]], ...]:
    """What stands left of the gutter, right of it, and across."""
    left = [part for part in parts if max(run.right for run in part) <= gutter]
    right = [part for part in parts if part[0].x >= gutter]
    across = [part for part in parts if part[0].x < gutter < max(run.right for run in part)]
    return left, right, across


def _table_line(number: int, table: Table) -> Line:
    return Line(number, table.x, table.y, table.x + table.width, 0.0, False, table.markdown, table=True)


def _rows(runs: Sequence[TextRun]) -> list[list[TextRun]]:
    """Runs on one base line, from left to right; a raised or lowered number joins the line it touches."""
    rows: list[list[TextRun]] = []
    heads: list[TextRun] = []
    for run in sorted(runs, key=lambda run: (-run.size, -run.y, run.x)):
        best = None
        for index in range(len(heads) - 1, -1, -1):
            head = heads[index]
            near = 0.35 if run.size > _SMALL * head.size else 0.75
            if abs(run.middle - head.middle) < near * head.height and (
                run.size > _SMALL * head.size or _touches(run, rows[index])
            ):
                best = index
                break
        if best is None:
            rows.append([run])
            heads.append(run)
        else:
            rows[best].append(run)
    ordered = sorted(zip(heads, rows, strict=True), key=lambda pair: (-pair[0].middle, pair[0].x))
    return [sorted(row, key=lambda run: run.x) for _, row in ordered]


def _touches(run: TextRun, row: Sequence[TextRun]) -> bool:
    room = row[0].size
    return any(other.x - room < run.right and run.x < other.right + room for other in row)


def _gutter(page: Page, rows: Sequence[Sequence[TextRun]]) -> float | None:
    """Where the page is parted into two columns; None when it has one."""
    middle = [page.width * step / 200 for step in range(80, 121, 2)]
    at = min(middle, key=lambda place: sum(_crosses(part, place) for row in rows for part in _parted(row, place)))
    parts = [part for row in rows for part in _parted(row, at)]
    inside = [part for part in parts if not _crosses(part, at)]
    sides = [[part for part in inside if (part[0].x >= at) == right] for right in (False, True)]
    across = len(parts) - len(inside)
    if min(map(len, sides)) < _LINES_ENOUGH or across > _CROSSING * len(parts):
        return None
    # Figures and tables also leave the middle free, but not with lines as long as a column is wide.
    wide = sum(max(run.right for run in part) - part[0].x > _COLUMN * page.width for side in sides for part in side)
    return at if 2 * wide > sum(map(len, sides)) else None


def _crosses(part: Sequence[TextRun], at: float) -> bool:
    return part[0].x < at < max(run.right for run in part)


def _parted(row: Sequence[TextRun], at: float) -> list[list[TextRun]]:
    """The row cut at `at` if there is room for it, else whole."""
    left = [run for run in row if run.x + run.width / 2 < at]
    right = [run for run in row if run.x + run.width / 2 >= at]
    if not left or not right:
        return [list(row)]
    end, begin = max(run.right for run in left), min(run.x for run in right)
    if end > at or begin < at or begin - end < _COLUMN_GAP * row[0].size:
        return [list(row)]
    return [left, right]


def _by_columns(lines: Sequence[Line], gutter: float) -> Iterator[Line]:
    """Between two lines that go across, the left column and then the right one."""
    left: list[Line] = []
    right: list[Line] = []
    for line in sorted(lines, key=lambda line: -line.y):
        if line.right <= gutter:
            left.append(line)
        elif line.x >= gutter:
            right.append(line)
        else:
            yield from (*left, *right, line)
            left, right = [], []
    yield from (*left, *right)


def _line(number: int, runs: Sequence[TextRun], lost: bool) -> Line:
    """Runs from left to right as one line, with a space at each gap that is one."""
    weight: Counter[float] = Counter()
    text = ""
    for before, run in zip((None, *runs), runs, strict=False):
        weight[run.size] += len(run.text.strip())
        text = run.text if before is None else joined(text, run.text, _gap(before, run), lost)
    size = weight.most_common(1)[0][0]
    letters = [run for run in runs if any(character.isalnum() for character in run.text)]
    bold = bool(letters) and all(run.bold for run in letters)
    right = max(run.right for run in runs)
    low = min((run for run in runs if run.size == size), key=lambda run: run.y).y
    code = bool(letters) and all(run.mono for run in letters)
    words = re.sub(r"\s+", " ", text).strip()
    return Line(number, runs[0].x, low, right, round(size, 1), bold, words, code=code)


def _gap(before: TextRun, run: TextRun) -> float:
    """The room between two runs in letter sizes, bold letters taken for as narrow as plain ones."""
    gap = (run.x - before.right) / run.size
    return gap / _BOLD if before.bold and run.bold else gap


def _at_edge(page: Page, line: Line) -> bool:
    return not line.table and not _MARGIN * page.height < line.y < (1 - _MARGIN) * page.height


def without_numbers(text: str) -> str:
    """The same for "Page 3 of 9" and "Page 4 of 9"."""
    return re.sub(r"\d+", "#", text).casefold().strip()


def is_number(text: str) -> bool:
    """Whether it is the number of a page."""
    return bool(re.fullmatch(r"[-–—\s]*(?:page\s*)?\d{1,4}(?:\s*(?:/|of)\s*\d{1,4})?[-–—\s]*", text, re.IGNORECASE))


def _running(pages: Sequence[Page], found: Sequence[Sequence[Line]]) -> set[str]:
    """What stands at the same edge of several pages, numbers aside."""
    seen: Counter[str] = Counter()
    for page, lines in zip(pages, found, strict=True):
        seen.update({without_numbers(line.text) for line in lines if _at_edge(page, line)})
    return {pattern for pattern, count in seen.items() if count >= ON_PAGES and len(pattern) < 200}
