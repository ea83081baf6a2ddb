"""Writes a table's JSON as markdown, CSV, Excel, LaTeX, Word or HTML, with the words behind its cells; blocks."""

from __future__ import annotations

import base64
import csv
import io
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from ..citations.export.section_files import ExportError
from ..documents.pandoc import PandocError, pandoc
from ..documents.plain_text import plain_text
from .cells import STATUS_LABELS, cell_text, study_name
from .column_values import sum_lines
from .stored_tables import count_line
from .table_plots import draw_table

TableFormat = Literal["md", "csv", "xlsx", "tex", "docx", "html", "svg"]
TABLE_FORMATS: Final[tuple[TableFormat, ...]] = get_args(TableFormat)

_ROOM: Final = "evidence_tables"
_SECONDS: Final = 120.0
_MEGABYTES: Final = 1500
_FORMULA_SIGNS: Final = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run text that begins with these


def render_table(table: Mapping[str, Any], target: TableFormat) -> bytes:
    """The table in a format; raises `ExportError` if pandoc fails."""
    if target == "csv":
        return _csv(table)
    if target == "xlsx":
        return _xlsx(table)
    picture = draw_table(table)
    if target == "svg":
        if picture is None:
            raise ExportError("The table has no column that can be drawn: it needs two values of one unit, or stances.")
        return picture.svg().encode()
    if target == "html":
        return _html(table, picture.svg() if picture else "", styled=True).encode()
    shown = ""
    if target == "docx" and picture is not None:  # pandoc's sandbox opens no file
        shown = f'<img src="data:image/png;base64,{base64.b64encode(picture.png()).decode()}" alt="The table, drawn.">'
    return _by_pandoc(_html(table, shown, styled=False), target)


def _word_rows(table: Mapping[str, Any]) -> Iterator[list[str]]:
    """Study, column, value, words, page and status of each cell."""
    for row in table["rows"]:
        for name, cell in row["cells"].items():
            page = "" if cell["page"] is None else str(cell["page"])
            yield [study_name(row), name, cell_text(cell), _plain_quote(cell["quote"]), page, cell["status"]]


def _grid(table: Mapping[str, Any]) -> Iterator[list[str]]:
    columns = [column["name"] for column in table["columns"]]
    units = [f" ({column['unit']})" if column["unit"] else "" for column in table["columns"]]
    yield ["Study", "Year", *(name + unit for name, unit in zip(columns, units, strict=True))]
    for row in table["rows"]:
        yield [study_name(row), str(row["year"] or "n.d."), *(cell_text(row["cells"][name]) for name in columns)]


def _csv(table: Mapping[str, Any]) -> bytes:
    written = io.StringIO()
    writer = csv.writer(written)
    for row in _grid(table):
        writer.writerow([f"'{text}" if text.startswith(_FORMULA_SIGNS) else text for text in row])
    return written.getvalue().encode("utf-8-sig")  # with the mark by which Excel knows UTF-8


def _xlsx(table: Mapping[str, Any]) -> bytes:
    import xlsxwriter

    made = io.BytesIO()
    # All cells are text: nothing in a paper becomes a formula or a link.
    with xlsxwriter.Workbook(made, {"in_memory": True}) as book:
        head, wrapped = book.add_format({"bold": True}), book.add_format({"text_wrap": True, "valign": "top"})
        words = [["Study", "Column", "Value", "Words", "Page", "Status"], *_word_rows(table)]
        foot = [
            [table["question"]],
            *[[line] for line in (count_line(table), *sum_lines(table))],
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
    return report_template("table.html", _ROOM, value=cell_text, study=study_name, quote=_plain_quote).render(
        table=table,
        style=Markup(style),
        style_hash=content_hash(style),
        labels=STATUS_LABELS,
        foot=[count_line(table), *sum_lines(table)],
        picture=Markup(picture),
    )


def _by_pandoc(html: str, target: Literal["md", "tex", "docx"]) -> bytes:
    to = {"md": "gfm", "tex": "latex", "docx": "docx"}[target]
    options = ["--from", "html", "--to", to, "--wrap=none", *(["--standalone"] if target == "docx" else [])]
    with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
        source = Path(folder) / "table.html"
        source.write_text(html, encoding="utf-8", errors="replace")
        try:
            return pandoc([*options, "--output=-", "--", str(source)], seconds=_SECONDS, megabytes=_MEGABYTES)
        except (PandocError, OSError) as error:
            raise ExportError(f"The {target} file could not be made ({' '.join(str(error).split())[:300]}).") from error


def _plain_quote(quote: str) -> str:
    return " ".join(plain_text(quote).split())
