"""The scores of a table against labels: what counts as found, right and missed."""

from __future__ import annotations

from typing import Any

from bench.table_scores import score_table
from citeloom.evidence_tables.cells import TableCell

LABEL: Any = {
    "relevant": ["ada2020", "grace2021"],
    "cells": {
        "ada2020": {
            "n": {"status": "reported", "value": "120 looms", "words": "we studied 120 looms"},
            "dose": {"status": "not reported", "value": "", "words": ""},
        },
        "grace2021": {"n": {"status": "reported", "value": "40", "words": "40 radios"}},
    },
}


def row(key: str, **cells: TableCell) -> dict[str, Any]:
    return {"key": key, "cells": {name: cell.as_dict() for name, cell in cells.items()}}


def test_rows_and_cells_are_counted_once_each() -> None:
    value = TableCell("120", status="reported")
    table = {"rows": [row("ada2020", N=value, dose=TableCell("5 mg", status="reported")), row("hedy2022", N=value)]}
    score = score_table(table, LABEL)
    assert (score.counts["found"], score.counts["relevant"], score.counts["included"]) == (1, 2, 2)
    assert (score.counts["right"], score.counts["cells"], score.counts["invented"]) == (1, 2, 1)
    assert score.counts["words"] == 0, "no words stand behind the cell"


def test_a_cell_that_misses_a_stated_value_counts_as_false_not_reported() -> None:
    score = score_table({"rows": [row("grace2021", n=TableCell())]}, LABEL)
    assert (score.counts["missed"], score.counts["reported"], len(score.doubtful)) == (1, 1, 1)
