"""The reader of table cells: words are sliced from sentences that it was shown, and only valid values are taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from citeloom.documents.chunking import Window
from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.chat_cell_reader import ChatCellReader
from citeloom.roles.protocols import TableColumn

COLUMNS = (
    TableColumn("networks", "how many networks", "number"),
    TableColumn("code", kind="yes/no"),
    TableColumn("kind", kind="choice", options=("Benchmark", "Survey")),
)


def reader(caller: Any, prompts: PromptLibrary, notes: list[str]) -> ChatCellReader:
    return ChatCellReader(caller, prompts, max_tokens=90, note=notes.append)


def row(*cells: dict[str, Any], study: str = "", belongs: bool = True) -> dict[str, Any]:
    return {"belongs": belongs, "reason": "it compares", "studies": [{"study": study, "cells": list(cells)}]}


async def test_the_words_of_a_cell_are_those_of_the_named_sentences(
    scripted: Any, prompts: PromptLibrary, make_window: Callable[..., Window]
) -> None:
    window = make_window()
    shown = [sentence.text for sentence in window.sentences()]
    place = next(number for number, text in enumerate(shown, 1) if "20 networks" in text)
    caller = scripted(row({"column": "Networks", "value": 20, "unit": None, "sentences": f"{place}, 99"}))
    reading = await reader(caller, prompts, []).read_row("which compare", COLUMNS, [window])
    assert reading is not None and reading.belongs
    (cell,) = reading.studies[0].cells
    ((chunk, start, end),) = cell.spans
    assert (cell.column, cell.value) == ("networks", "20")
    assert chunk.text[start:end] == "We compared it with embeddings on 20 networks."


@pytest.mark.parametrize(
    "cell",
    [
        {"column": "colour", "value": "red", "sentences": [1]},
        {"column": "networks", "value": "20", "sentences": []},
        {"column": "networks", "value": "20", "sentences": [99]},
        {"column": "networks", "value": " ", "sentences": [1]},
        {"column": "code", "value": "perhaps", "sentences": [1]},
        {"column": "kind", "value": "novel", "sentences": [1]},
    ],
)
async def test_a_cell_without_words_or_with_a_forbidden_value_is_left_out(
    scripted: Any, prompts: PromptLibrary, make_window: Callable[..., Window], cell: dict[str, Any]
) -> None:
    reading = await reader(scripted(row(cell)), prompts, []).read_row("which compare", COLUMNS, [make_window()])
    assert reading is not None and reading.studies[0].cells == ()


async def test_values_of_closed_kinds_are_spelled_as_in_the_column(
    scripted: Any, prompts: PromptLibrary, make_window: Callable[..., Window]
) -> None:
    caller = scripted(
        row(
            {"column": "code", "value": True, "sentences": [1]},
            {"column": "kind", "value": "survey", "sentences": [1]},
            study="Experiment 2.",
        )
    )
    reading = await reader(caller, prompts, []).read_row("q", COLUMNS, [make_window()], ["experiment 2"])
    assert reading is not None
    assert (reading.studies[0].study, [cell.value for cell in reading.studies[0].cells]) == (
        "experiment 2",
        ["yes", "Survey"],
    )


async def test_a_paper_that_does_not_belong_has_a_reason_and_no_cells(
    scripted: Any, prompts: PromptLibrary, make_window: Callable[..., Window]
) -> None:
    caller = scripted(row({"column": "networks", "value": "20", "sentences": [1]}, belongs=False))
    reading = await reader(caller, prompts, []).read_row("q", COLUMNS, [make_window()])
    assert reading is not None and (reading.belongs, reading.reason, reading.studies) == (False, "it compares", ())


async def test_without_a_valid_answer_the_paper_is_unread_and_columns_are_only_named(
    scripted: Any, prompts: PromptLibrary, make_window: Callable[..., Window]
) -> None:
    notes: list[str] = []
    cells = reader(scripted("no JSON", "none again", "no JSON", "none again"), prompts, notes)
    assert await cells.read_row("q", COLUMNS, [make_window()]) is None
    assert await cells.propose_columns("q", ["n", "design"], []) == (TableColumn("n"), TableColumn("design"))
    assert len(notes) == 2


async def test_named_columns_keep_their_order_and_unknown_kinds_are_text(scripted: Any, prompts: PromptLibrary) -> None:
    planned = [{"name": "Design", "kind": "whatever", "asks": "the design"}, {"name": "extra"}, {"name": "N"}]
    found = await reader(scripted({"columns": planned}), prompts, []).propose_columns("q", ["n", "design"], ["Looms"])
    assert [(column.name, column.kind, column.asks) for column in found] == [
        ("N", "text", ""),
        ("Design", "text", "the design"),
    ]
