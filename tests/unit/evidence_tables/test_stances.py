"""Stances in the cells of a table, their counts, and their scores."""

from __future__ import annotations

from typing import Any

import pytest

from bench.evidence_inference import Prompt, overlaps, score_stances
from citeloom.evidence_tables.cells import TableCell, agreement_record, disagreements, stance_column, stance_of
from citeloom.evidence_tables.table_files import draw_table

CLAIM = "Aspirin relieves migraine better than placebo in adults"


def cell(value: str, *others: str, status: str = "reported", condition: str = "") -> dict[str, Any]:
    alternatives = tuple(TableCell(other, status="reported") for other in others)
    made = TableCell(value, condition=condition, status=status, alternatives=alternatives)  # type: ignore[arg-type]
    return {**made.as_dict(), "edited": status == "edited", "revision": 0}


def table(*stances: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    rows = [
        {"key": key, "title": "", "year": 2020, "study": "", "changed": False, "cells": {"stance": stance}}
        for key, stance in stances
    ]
    return {
        "table_id": "agree-1",
        "question": CLAIM,
        "papers": 9,
        "screened": 9,
        "removed": [],
        "notice": "",
        "columns": [stance_column(CLAIM).as_dict()],
        "rows": rows,
        "left_out": [{"key": "near", "title": "", "year": None, "reason": "a protocol"}],
    }


@pytest.mark.parametrize(
    ("given", "stance"),
    [
        (cell("for"), "for"),
        (cell("No difference", status="edited"), "no difference"),
        (cell("for", "against", status="conflicting"), "mixed"),
        (cell("", status="not_reported"), ""),
        (cell("", status="unread"), ""),
        (cell("A sentence.", status="not_judged"), "not judged"),
        (cell("in some way", status="edited"), ""),
    ],
)
def test_the_stance_of_a_cell_is_read(given: dict[str, Any], stance: str) -> None:
    assert stance_of(given) == stance


def test_a_users_column_without_a_claim_is_not_a_column_of_stances() -> None:
    made = table(("a", cell("for")), ("b", cell("against")))
    made["columns"][0]["queries"] = []
    assert disagreements(made) == [] and draw_table(made) is None


def test_papers_are_counted_by_stance_and_silent_ones_named() -> None:
    made = table(("a", cell("against")), ("b", cell("for")), ("b", cell("for")), ("c", cell("", status="not_reported")))
    record = agreement_record(made)
    assert record["counts"] == {"for": 1, "against": 1}
    assert [item["key"] for item in record["studies"]] == ["b", "b", "a"]
    assert [(item["key"], item["reason"]) for item in record["silent"]] == [("c", ""), ("near", "a protocol")]


@pytest.mark.parametrize(
    ("first", "second", "disagree"),
    [
        ("for", "against", True),
        ("for", "no difference", True),
        ("for", "other condition", False),
        ("against", "no difference", False),
        ("for", "for", False),
    ],
)
def test_only_stances_on_both_sides_of_a_claim_are_a_disagreement(first: str, second: str, disagree: bool) -> None:
    found = disagreements(table(("a", cell(first)), ("b", cell(second))))
    assert [item["claim"] for item in found] == [CLAIM] * disagree
    assert disagreements(table(("a", cell("for")), ("a", cell("against")))) == [], "one paper is not two"


def test_a_stance_is_scored_as_a_direction_with_the_readers_words() -> None:
    said = "headache was significantly lower in the aspirin group than under placebo (p = 0.01)"
    prompt = Prompt("1", "aspirin increases headache compared with placebo", "increased", "decreased", (said,))
    span = {"chunk_id": "k:1", "start": 0, "end": 9, "quote": f"At 2 hours {said}.", "page": None, "chunk_hash": ""}
    against = {**cell("against"), "spans": [span]}
    lines = score_stances([prompt, prompt, prompt], [against, cell("for"), None])
    assert lines[:3] == [
        "direction right: 1 of 3 (0.333)",
        '"against" right: 1 of 1 (1.000)',
        "readers' words among the cell's: 1 of 3 (0.333)",
    ]
    assert "  decreased -> silent: 1" in lines
    assert not overlaps("headache", "") and overlaps("IL-2 | 35.2", "| IL-2 | 35.2 | 30.0 |")
