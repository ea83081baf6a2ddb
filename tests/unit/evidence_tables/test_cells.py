"""Cells are accepted only with their numbers in their words, or with arithmetic that yields them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from citeloom.documents import Category, Chunk
from citeloom.evidence_tables.cells import (
    TableCell,
    accept_cells,
    convert_value,
    evaluate_formula,
    format_cell,
    split_columns,
)
from citeloom.roles.protocols import CellReading, TableColumn

WORDS = "Of 48 weavers, 12 (25%) tired within 1.5 hours; 36 did not."
CHUNK = Chunk("ada2020:00000", "ada2020", 0, WORDS, "Results", "", Category.EVALUATION, 1, 3, 0, len(WORDS), 20)
NUMBER = TableColumn("n", kind="number")


def reading(value: str, *, unit: str = "", formula: str = "", condition: str = "") -> CellReading:
    return CellReading("n", value, unit, condition, formula, ((CHUNK, 0, len(WORDS)),))


def accepted(*readings: CellReading, column: TableColumn = NUMBER) -> TableCell | None:
    return accept_cells(readings, column)


@pytest.mark.parametrize("value", ["48", "12 (25%)", "12 of 48", "1.50", "25 %"])
def test_a_value_found_in_the_paper_has_status_reported_and_keeps_its_quote(value: str) -> None:
    cell = accepted(reading(value))
    assert cell is not None and cell.status == "reported" and cell.quote == WORDS


@pytest.mark.parametrize("value", ["49", "12.5", "0.3", "about 50"])
def test_a_value_without_supporting_words_is_refused(value: str) -> None:
    assert accepted(reading(value)) is None


@pytest.mark.parametrize(
    ("value", "formula", "status"),
    [
        ("24", "36 - 12", "computed"),
        ("75", "100 * 36 / 48", "computed"),
        ("0.33", "12 / 36", "computed"),
        ("0.34", "12 / 36", None),
        ("24", "30 - 6", None),
        ("24", "36 - 12; import os", None),
        ("24", "__import__('os')", None),
        ("24", "36 ** 12", None),
        ("24", "12 / 0", None),
    ],
)
def test_arithmetic_counts_only_if_correct_and_on_printed_numbers(value: str, formula: str, status: str | None) -> None:
    cell = accepted(reading(value, formula=formula))
    assert (cell.status if cell else None) == status


def test_values_for_two_conditions_do_not_conflict() -> None:
    cell = accepted(reading("12", condition="at 10 weeks"), reading("36", condition="at a year"))
    assert cell is not None and cell.status == "reported"
    assert format_cell(cell.as_dict()) == "12 (at 10 weeks) / 36 (at a year)"


def test_a_unit_is_shown_once() -> None:
    assert format_cell(TableCell("12%", "%", status="reported").as_dict()) == "12%"
    assert format_cell(TableCell("12 (25)", "weavers", status="reported").as_dict()) == "12 (25) weavers"
    counts = "12 weavers and 36 spinners"
    assert format_cell(TableCell(counts, "participants", status="reported").as_dict()) == counts


def test_two_values_for_one_thing_are_both_kept() -> None:
    cell = accepted(reading("12"), reading("36"), reading("12"))
    assert cell is not None and cell.status == "conflicting"
    assert [cell.value, *(other.value for other in cell.alternatives)] == ["12", "36"]
    assert [other["value"] for other in cell.as_dict()["alternatives"]] == ["36"]


@pytest.mark.parametrize(
    ("value", "unit", "wanted", "converted"),
    [
        ("1.5", "hours", "minutes", "90"),
        ("12.5", "mg/dL", "g/L", "0.125"),
        ("98.6", "degF", "degC", "37"),
        ("1", "year", "weeks", "52.1786"),
        ("12,345,678", "g", "kg", "12345.678"),
        ("1.5", "hours", "hours", ""),
        ("1.5", "hours", "kg", ""),
        ("1.5 to 3", "hours", "minutes", ""),
        ("1.5", "no such unit [", "minutes", ""),
        ("1.5", "", "minutes", ""),
    ],
)
def test_units_are_converted_or_left_alone(value: str, unit: str, wanted: str, converted: str) -> None:
    assert convert_value(value, unit, wanted) == converted


def test_brackets_and_spelled_out_signs_are_read() -> None:
    assert evaluate_formula("(1,200 − 200) ÷ 4 = 250") == Decimal(250)
    assert evaluate_formula("9" * 201) is None


@pytest.mark.parametrize(
    ("question", "subject", "names"),
    [
        ("trials of aspirin: n, dose and design", "trials of aspirin", ("n", "dose", "design")),
        ("Which trials gave aspirin: n; pain free?", "Which trials gave aspirin", ("n", "pain free")),
        ("trials of aspirin", "trials of aspirin", ()),
        ("Aspirin: does it help", "Aspirin: does it help", ()),
        ("Sleep: how it changes with age, and why", "Sleep: how it changes with age, and why", ()),
    ],
)
def test_column_names_in_a_question_are_not_part_of_it(question: str, subject: str, names: tuple[str, ...]) -> None:
    assert split_columns(question) == (subject, names)


def test_an_empty_cell_without_a_model_says_that_nothing_is_near() -> None:
    assert format_cell(TableCell(status="not_judged").as_dict()) == "nothing near"
