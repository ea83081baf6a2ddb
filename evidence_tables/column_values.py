"""The numbers in the cells of a table: estimates with their intervals, and summary statistics of columns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from ..citations.checks.number_parsing import given_numbers
from ..plurals import counted
from .cells import outermost, study_name

_LEVEL: Final = re.compile(r"\s?%?\s?(?:C[rI]?I\b|confidence|credible)", re.IGNORECASE)  # after "95"
_SPREAD: Final = re.compile(r"\s?(?:\(|\[|±|$)")  # after a value: "12.4 (SD 3.1)"


@dataclass(frozen=True, slots=True)
class CellValue:
    """A number of a cell with its unit; `low` and `high` are the ends of its interval, if the cell has one."""

    label: str
    at: float
    unit: str
    low: float | None = None
    high: float | None = None


def column_values(table: Mapping[str, Any], column: Mapping[str, Any]) -> Iterator[CellValue]:
    """The values of a number or interval column, in the order of the rows; cells without one are skipped."""
    if column["kind"] not in ("number", "interval"):
        return
    for row in table["rows"]:
        cell = row["cells"][column["name"]]
        if cell["status"] in ("reported", "computed", "conflicting", "edited"):
            unit = column["unit"] if cell["converted"] or cell["status"] == "edited" else cell["unit"]
            if (found := _read(cell["converted"] or cell["value"], column["kind"])) is not None:
                yield CellValue(study_name(row), found[0], unit, *found[1:])


def _read(text: str, kind: str) -> tuple[float, ...] | None:
    """The estimate of a cell, and the ends of its interval if it has one; None if it is ambiguous."""
    numbers = [number for number in outermost(given_numbers(text)) if not _LEVEL.match(text, number.end)]
    values = [float(number.value) for number in numbers]
    if kind == "interval" and len(values) == 3 and values[1] <= values[0] <= values[2]:
        return tuple(values)
    if len(values) == 1 or (values and _SPREAD.match(text, numbers[0].end)):
        return (values[0],)
    return None


def column_sums(table: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """For each column of numbers, by unit: count, median and range."""
    found: dict[str, list[dict[str, Any]]] = {}
    for column in table["columns"]:
        by_unit: dict[str, list[float]] = defaultdict(list)
        for value in column_values(table, column):
            by_unit[value.unit].append(value.at)
        if by_unit:
            found[column["name"]] = [
                {"unit": unit, "count": len(given), "median": median(given), "low": min(given), "high": max(given)}
                for unit, given in by_unit.items()
            ]
    return found


def sum_lines(table: Mapping[str, Any]) -> list[str]:
    """The summary statistics of the columns, a line for each unit."""
    return [
        f"{name}: {counted(item['count'], 'value')}, median {item['median']:.6g}, "
        f"{item['low']:.6g} to {item['high']:.6g} {item['unit']}".rstrip()
        for name, units in table["sums"].items()
        for item in units
    ]
