"""Draws a table: papers from "against" to "for", a forest plot of effects, the values of a column.

All plots have one shape, a row for each study with a point and perhaps an interval, on a common axis; they are stacked
in one picture, written as SVG or, for Word, as PNG.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Any, Final, Literal

from .cells import study_name
from .column_values import CellValue, column_values
from .stances import STANCES, is_stance, stances

_WIDTH: Final = 760
_LEFT, _RIGHT = 250, 730  # of the axis
_ROW: Final = 24
_SIZE: Final = 13  # of letters
_LABEL: Final = 32  # characters
_INK: Final = "#222222"
_FEWEST: Final = 2  # values of a plot
_TICKS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)  # of a ratio
_RATIO: Final = re.compile(r"\bratios?\b|\b[aA]?[OHR]R\b")
_SHARP: Final = 2  # pixels of a PNG for each unit
_ANCHORS: Final = {"start": "ls", "middle": "ms", "end": "rs"}  # in Pillow's terms


@dataclass(frozen=True, slots=True)
class _Shape:
    """A line from (x, y) to (x2, y2), a dot around (x, y), or a text anchored there."""

    kind: Literal["line", "dot", "text"]
    x: float
    y: float
    x2: float = 0
    y2: float = 0
    text: str = ""
    anchor: Literal["start", "middle", "end"] = "start"


@dataclass(frozen=True, slots=True)
class _Axis:
    """Places values between the ends of the axis, by size or, for ratios, by their logarithms."""

    low: float
    high: float
    ticks: Mapping[float, str]
    reference: float | None = None
    ratio: bool = False

    def x(self, value: float) -> float:
        low, high, at = (log10(item) if self.ratio else item for item in (self.low, self.high, value))
        return _LEFT + (_RIGHT - _LEFT) * (min(max(at, low), high) - low) / (high - low)


@dataclass(frozen=True, slots=True)
class TablePicture:
    """The plots of a table, one below the other."""

    shapes: Sequence[_Shape]
    height: int

    def svg(self) -> str:
        """The picture as an SVG element."""
        drawn = "".join(map(_as_svg, self.shapes))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {self.height}" width="{_WIDTH}" '
            f'height="{self.height}" role="img" font-family="sans-serif" font-size="{_SIZE}" fill="{_INK}" '
            f'stroke-width="1.5"><rect width="100%" height="100%" fill="#ffffff"/>{drawn}</svg>'
        )

    def png(self) -> bytes:
        """The picture as a PNG."""
        from PIL import Image, ImageDraw, ImageFont

        image = Image.new("RGB", (_WIDTH * _SHARP, self.height * _SHARP), "white")
        pen, font = ImageDraw.Draw(image), ImageFont.load_default(_SIZE * _SHARP)
        for shape in self.shapes:
            x, y, x2, y2 = (_SHARP * item for item in (shape.x, shape.y, shape.x2, shape.y2))
            if shape.kind == "line":
                pen.line((x, y, x2, y2), _INK, 3)
            elif shape.kind == "dot":
                pen.circle((x, y), 5 * _SHARP, _INK)
            else:
                pen.text((x, y), shape.text, _INK, font, _ANCHORS[shape.anchor])
        written = io.BytesIO()
        image.save(written, "PNG")
        return written.getvalue()


def draw_table(table: Mapping[str, Any]) -> TablePicture | None:
    """The plots of all columns that can be drawn; None if there is none."""
    shapes: list[_Shape] = []
    top = 0
    for title, values, axis in _plots(table):
        drawn = list(_drawn(title, values, axis, top))
        shapes += drawn
        top += (len(values) + 3) * _ROW
    return TablePicture(shapes, top + _ROW // 2) if shapes else None


def _plots(table: Mapping[str, Any]) -> Iterator[tuple[str, list[CellValue], _Axis]]:
    for column in table["columns"]:
        name = column["name"]
        if is_stance(column):
            placed = [item for item in stances(table, name) if item["stance"] in STANCES]
            values = [CellValue(study_name(item), STANCES.index(item["stance"]), "") for item in placed]
            if values:
                last = len(STANCES) - 1
                yield column["queries"][0], values, _Axis(-0.3, last + 0.3, dict(enumerate(STANCES)))
            continue
        values = list(column_values(table, column))
        (unit, count), *_ = Counter(value.unit for value in values).most_common(1) or [("", 0)]
        if count >= _FEWEST:
            same = [value for value in values if value.unit == unit]
            yield f"{name}{f' ({unit})' if unit else ''}", same, _axis(same, f"{name} {column['asks']}")


def _axis(values: Sequence[CellValue], about: str) -> _Axis:
    """An axis that covers all values; for ratios, with a line at 1, else at 0 if the axis includes it."""
    ends = [end for value in values for end in (value.at, value.low, value.high) if end is not None]
    low, high = min(ends), max(ends)
    if _RATIO.search(about) and low > 0:
        low, high = min(low, 0.9) / 1.1, max(high, 1.1) * 1.1
        return _Axis(low, high, {tick: f"{tick:g}" for tick in _TICKS if low <= tick <= high}, 1.0, ratio=True)
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** floor(log10(span / 4))
    step = next(size * power for size in (1, 2, 5, 10) if span / (size * power) <= 5)
    first, last = floor(low / step), ceil(high / step)
    last += first == last
    ticks = {place * step: f"{place * step:.6g}" for place in range(first, last + 1)}
    return _Axis(first * step, last * step, ticks, 0.0 if first <= 0 <= last else None)


def _drawn(title: str, values: Sequence[CellValue], axis: _Axis, top: int) -> Iterator[_Shape]:
    yield _Shape("text", 10, top + 18, text=_short(title, 105))
    bottom = top + (len(values) + 1.4) * _ROW
    yield _Shape("line", _LEFT, bottom, _RIGHT, bottom)
    for place, name in axis.ticks.items():
        yield _Shape("line", axis.x(place), bottom, axis.x(place), bottom + 5)
        yield _Shape("text", axis.x(place), bottom + 20, text=name, anchor="middle")
    if axis.reference is not None:
        yield _Shape("line", axis.x(axis.reference), top + _ROW, axis.x(axis.reference), bottom)
    for number, value in enumerate(values, 1):
        y = top + (number + 0.7) * _ROW
        yield _Shape("text", _LEFT - 12, y + 4, text=_short(value.label, _LABEL), anchor="end")
        yield _Shape("dot", axis.x(value.at), y)
        if value.low is not None and value.high is not None:
            yield _Shape("line", axis.x(value.low), y, axis.x(value.high), y)


def _as_svg(shape: _Shape) -> str:
    x, y, x2, y2 = (f"{item:.1f}" for item in (shape.x, shape.y, shape.x2, shape.y2))
    if shape.kind == "line":
        return f'<line x1="{x}" y1="{y}" x2="{x2}" y2="{y2}" stroke="{_INK}"/>'
    if shape.kind == "dot":
        return f'<circle cx="{x}" cy="{y}" r="5"/>'
    return f'<text x="{x}" y="{y}" text-anchor="{shape.anchor}">{escape(shape.text)}</text>'


def _short(text: str, most: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else f"{plain[: most - 1].rstrip()}…"
