"""Finds the part of a page that a caption belongs to: a drawing above or below it, or the rules of a table.

Drawings are all non-letters painted on a page: images, forms, paths. A figure extends from its caption, across the
drawings, to the running text on their other side. Boxes are (left, bottom, right, top) in points; y grows upwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ..figures import FigureKind

Box = tuple[float, float, float, float]  # left, bottom, right, top

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
class PageLayout:
    """Where a page has drawings, lines of letters and captions."""

    width: float
    height: float
    drawings: tuple[Box, ...]
    lines: tuple[Box, ...]
    captions: tuple[Box, ...]


def find_region(caption: Box, kind: FigureKind, page: PageLayout) -> Box | None:
    """The box of the figure or table with this caption; None if none is drawn next to it."""
    left, right = _column(caption, page)
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


def _column(caption: Box, page: PageLayout) -> tuple[float, float]:
    middle = page.width / 2
    crossing = sum(line[0] < middle < line[2] for line in page.lines)
    one_column = len(page.lines) < _LINES_ENOUGH or crossing > _TWO_COLUMNS * len(page.lines)
    if one_column or caption[0] < middle - _SAME_EDGE < middle + _SAME_EDGE < caption[2]:
        return 0.0, page.width
    return (0.0, middle) if caption[2] <= middle + _SAME_EDGE else (middle, page.width)


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
    inside = [_clipped(box, area) for box in drawings if _overlaps(box, area)]
    if not inside:
        return None
    drawn = enclosing_box(inside)
    if drawn[2] - drawn[0] < _LEAST or drawn[3] - drawn[1] < _LEAST:
        return None
    reach = (drawn[0] - _LABELS, drawn[1] - _LABELS, drawn[2] + _LABELS, drawn[3] + _LABELS)
    letters = [_clipped(line, area) for line in page.lines if _overlaps(line, reach) and _overlaps(line, area)]
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
    whole = _grid(first, drawings) or enclosing_box(alike)
    return whole if whole[3] - whole[1] > _LEAST_TABLE else None


def _grid(rule: Box, drawings: Sequence[Box]) -> Box | None:
    """The box of all connected cells, starting from those at a rule; None for a table without cells."""
    cells = [box for box in drawings if box[3] - box[1] > _RULE]
    grown: Box | None = None
    for _ in range(_GROWTH):
        left, bottom, right, top = grown or rule
        reach = (left - _RULE, bottom - _RULE, right + _RULE, top + _RULE)
        touching = [box for box in cells if _overlaps(box, reach)]
        if not touching or enclosing_box(touching) == grown:
            break
        grown = enclosing_box(touching if grown is None else [grown, *touching])
    return grown


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


def _clipped(box: Box, area: Box) -> Box:
    return max(box[0], area[0]), max(box[1], area[1]), min(box[2], area[2]), min(box[3], area[3])


def enclosing_box(boxes: Sequence[Box]) -> Box:
    """The smallest box that contains all boxes."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return min(lefts), min(bottoms), max(rights), max(tops)
