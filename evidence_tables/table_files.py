"""Writes a table's JSON as markdown, CSV, Excel, LaTeX, Word or HTML, and draws it; blocks.

A plot shows papers from "against" to "for", or the values of a column: a row for each study with a point and, if known,
its interval, on a common axis. Plots are stacked in one picture, written as SVG or, for Word, as PNG.
"""

from __future__ import annotations

import base64
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Any, Final, Literal, get_args

from ..citations.export.section_files import ExportError
from ..documents.pandoc import PandocError, pandoc
from ..documents.plain_text import plain_text
from ..text.words import one_line, shorten
from .cells import (
    STANCES,
    STATUS_LABELS,
    CellValue,
    column_summary_lines,
    column_values,
    format_cell,
    is_stance,
    stances,
    study_name,
)
from .stored_tables import count_line

TableFormat = Literal["md", "csv", "xlsx", "tex", "docx", "html", "svg"]
TABLE_FORMATS: Final[tuple[TableFormat, ...]] = get_args(TableFormat)

_ROOM: Final = "evidence_tables"
_FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run text that begins with these


def render_table(table: Mapping[str, Any], target: TableFormat) -> bytes:
    """Render the table in a format; raises `ExportError` if pandoc fails."""
    if target == "csv":
        return _csv(table)
    if target == "xlsx":
        return _xlsx(table)
    picture = draw_table(table)
    if target == "svg":
        if picture is None:
            raise ExportError("No column can be drawn: it needs stances, or two values with the same unit.")
        return picture.svg().encode()
    if target == "html":
        return _html(table, picture.svg() if picture else "", styled=True).encode()
    shown = ""
    if target == "docx" and picture is not None:  # pandoc's sandbox opens no file
        shown = f'<img src="data:image/png;base64,{base64.b64encode(picture.png()).decode()}" alt="The table, drawn.">'
    return _by_pandoc(_html(table, shown, styled=False), target)


def _word_rows(table: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield study, column, value, words, page and status of each cell."""
    for row in table["rows"]:
        for name, cell in row["cells"].items():
            page = "" if cell["page"] is None else str(cell["page"])
            yield [study_name(row), name, format_cell(cell), _plain_quote(cell["quote"]), page, cell["status"]]


def _grid(table: Mapping[str, Any]) -> Iterator[list[str]]:
    columns = [column["name"] for column in table["columns"]]
    units = [f" ({column['unit']})" if column["unit"] else "" for column in table["columns"]]
    yield ["Study", "Year", *(name + unit for name, unit in zip(columns, units, strict=True))]
    for row in table["rows"]:
        yield [study_name(row), str(row["year"] or "n.d."), *(format_cell(row["cells"][name]) for name in columns)]


def _csv(table: Mapping[str, Any]) -> bytes:
    written = io.StringIO()
    writer = csv.writer(written)
    for row in _grid(table):
        writer.writerow([f"'{text}" if text.startswith(_FORMULA_SIGNS) else text for text in row])
    return written.getvalue().encode("utf-8-sig")  # Excel recognises UTF-8 by this mark


def _xlsx(table: Mapping[str, Any]) -> bytes:
    import xlsxwriter

    made = io.BytesIO()
    # All cells are text, so that nothing in a paper becomes a formula or a link.
    with xlsxwriter.Workbook(made, {"in_memory": True}) as book:
        head, wrapped = book.add_format({"bold": True}), book.add_format({"text_wrap": True, "valign": "top"})
        words = [["Study", "Column", "Value", "Words", "Page", "Status"], *_word_rows(table)]
        foot = [
            [table["question"]],
            *[[line] for line in (count_line(table), *column_summary_lines(table))],
            *[[item["key"], item["reason"]] for item in table["left_out"]],
        ]
        for name, rows in (("Table", list(_grid(table))), ("Words", words), ("Papers", foot)):
            sheet = book.add_worksheet(name)
            sheet.set_column(0, 20, 28, wrapped)
            sheet.freeze_panes(1, 0)
            for line, row in enumerate(rows):
                for place, text in enumerate(row):
                    sheet.write_string(line, place, text[:32_000], head if line == 0 else wrapped)
    return made.getvalue()


def _html(table: Mapping[str, Any], picture: str, *, styled: bool) -> str:
    from markupsafe import Markup  # imported lazily: only files need these

    from ..citations.export.evidence_report import content_hash, packaged_template, report_template

    style = packaged_template("table.css", _ROOM) if styled else ""
    return report_template("table.html", _ROOM, value=format_cell, study=study_name, quote=_plain_quote).render(
        table=table,
        style=Markup(style),
        style_hash=content_hash(style),
        labels=STATUS_LABELS,
        foot=[count_line(table), *column_summary_lines(table)],
        picture=Markup(picture),
    )


def _by_pandoc(html: str, target: Literal["md", "tex", "docx"]) -> bytes:
    to = {"md": "gfm", "tex": "latex", "docx": "docx"}[target]
    options = ["--from", "html", "--to", to, "--wrap=none", *(["--standalone"] if target == "docx" else [])]
    try:
        return pandoc([*options, "--output=-", "table.html"], {"table.html": html})
    except (PandocError, OSError) as error:
        raise ExportError(f"The {target} file could not be made ({' '.join(str(error).split())[:300]}).") from error


def _plain_quote(quote: str) -> str:
    return one_line(plain_text(quote))


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
    """An axis; linear, or logarithmic for ratios."""

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
        """Draw the picture as an SVG element."""
        drawn = "".join(map(_as_svg, self.shapes))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {self.height}" width="{_WIDTH}" '
            f'height="{self.height}" role="img" font-family="sans-serif" font-size="{_SIZE}" fill="{_INK}" '
            f'stroke-width="1.5"><rect width="100%" height="100%" fill="#ffffff"/>{drawn}</svg>'
        )

    def png(self) -> bytes:
        """Draw the picture as a PNG."""
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
    """Draw all columns that can be plotted; None if there are none."""
    shapes: list[_Shape] = []
    top = 0
    for title, values, axis in _plots(table):
        drawn = list(_draw_plot(title, values, axis, top))
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
    """Make an axis that covers all values, with a reference line at 1 for ratios, else at 0 if it is included."""
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


def _draw_plot(title: str, values: Sequence[CellValue], axis: _Axis, top: int) -> Iterator[_Shape]:
    yield _Shape("text", 10, top + 18, text=shorten(title, 105))
    bottom = top + (len(values) + 1.4) * _ROW
    yield _Shape("line", _LEFT, bottom, _RIGHT, bottom)
    for place, name in axis.ticks.items():
        yield _Shape("line", axis.x(place), bottom, axis.x(place), bottom + 5)
        yield _Shape("text", axis.x(place), bottom + 20, text=name, anchor="middle")
    if axis.reference is not None:
        yield _Shape("line", axis.x(axis.reference), top + _ROW, axis.x(axis.reference), bottom)
    for number, value in enumerate(values, 1):
        y = top + (number + 0.7) * _ROW
        yield _Shape("text", _LEFT - 12, y + 4, text=shorten(value.label, _LABEL), anchor="end")
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
