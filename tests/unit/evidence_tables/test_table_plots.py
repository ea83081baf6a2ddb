"""The numbers of a column: their summary, and how they are drawn."""

from __future__ import annotations

import io
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from citeloom.evidence_tables.cells import (
    CellValue,
    TableCell,
    column_summaries,
    column_summary_lines,
    column_values,
)
from citeloom.evidence_tables.table_files import draw_table
from citeloom.roles.protocols import ColumnKind, TableColumn

CIRCLE, LINE, TEXT = (f"{{http://www.w3.org/2000/svg}}{name}" for name in ("circle", "line", "text"))


def table(kind: ColumnKind, *values: str, unit: str = "", name: str = "effect") -> dict[str, Any]:
    rows = [
        {
            "key": f"study{number}",
            "study": "",
            "cells": {name: TableCell(value, unit, status="reported").as_dict()},
        }
        for number, value in enumerate(values, 1)
    ]
    made: dict[str, Any] = {"columns": [TableColumn(name, "", kind).as_dict()], "rows": rows}
    return {**made, "sums": column_summaries(made)}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0.81 (95% CI 0.70 to 0.94)", (0.81, 0.70, 0.94)),
        ("-0.5 (95 % CI -0.8 to -0.2)", (-0.5, -0.8, -0.2)),
        ("aOR = 2.1; 95% CI: 1.1-4.0", (2.1, 1.1, 4.0)),
        ("0.9 (1.2 to 3.4)", (0.9, None, None)),
        ("1.4", (1.4, None, None)),
        ("0.70 to 0.94", None),
        ("none", None),
    ],
)
def test_an_estimate_is_read_with_its_interval(text: str, wanted: tuple[float | None, ...] | None) -> None:
    made = table("interval", text)
    values = list(column_values(made, made["columns"][0]))
    assert values == ([] if wanted is None else [CellValue("study1", wanted[0] or 0, "", wanted[1], wanted[2])])


def test_a_column_is_summarised_by_unit() -> None:
    made = table("number", "12.4 (SD 3.1)", "10 000", "7", "7 or 8", unit="mg", name="dose")
    assert made["sums"] == {"dose": [{"unit": "mg", "count": 3, "median": 12.4, "low": 7, "high": 10_000}]}
    assert column_summary_lines(made) == ["dose: 3 values, median 12.4, 7 to 10000 mg"]


def test_a_forest_plot_has_a_point_and_an_interval_for_each_study_and_a_line_at_no_effect() -> None:
    picture = draw_table(table("interval", "0.81 (0.70 to 0.94)", "1.2 (0.9 to 1.5)", name="odds ratio"))
    assert picture is not None
    root = ElementTree.fromstring(picture.svg())
    points = [float(item.attrib["cx"]) for item in root.iter(CIRCLE)]
    none = next(
        item for item in root.iter(LINE) if item.attrib["x1"] == item.attrib["x2"] and float(item.attrib["y1"]) < 40
    )
    assert len(points) == 2 and points[0] < float(none.attrib["x1"]) < points[1]
    across = [item.attrib for item in root.iter(LINE) if item.attrib["y1"] == item.attrib["y2"]]
    assert len(across) == 3, "the axis and two intervals"
    assert {"study1", "study2", "odds ratio", "1"} <= {item.text for item in root.iter(TEXT)}
    with Image.open(io.BytesIO(picture.png())) as image:
        assert image.size == (1520, 2 * picture.height)


def test_text_of_a_paper_cannot_break_out_of_the_plot() -> None:
    picture = draw_table(table("number", "1", "2", name="<script>alert(1)</script>"))
    assert picture is not None and "<script" not in picture.svg()


def test_a_table_with_fewer_than_two_values_is_not_drawn() -> None:
    assert draw_table(table("number", "1", "many")) is None
    assert draw_table(table("text", "1", "2")) is None
    same = draw_table(table("number", "3", "3"))
    assert same is not None and "nan" not in same.svg()
