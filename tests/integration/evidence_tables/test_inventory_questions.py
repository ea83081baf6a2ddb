"""A question for all studies of some kind is answered by a table: its cells are evidence, the counts below it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import citeloom
from citeloom.api.blocking import run_async
from citeloom.api.evidence_tables import aload_table
from citeloom.graph.session import Session
from citeloom.settings.config import Settings
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.protocol_answers import envelope
from tests.support.run_fixtures import home, sample_home

__all__ = ["home", "sample_home"]
QUESTION = "Which studies changed the calibration for wearers, and how in each?"


class Tabulator(Librarian):
    """Names all cards but the last, leaves out the paper of the second, and fills a cell from the first sentence."""

    belongs = True

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[str] = []

    def __call__(self, body: Json) -> Any:
        form = str((body.get("response_format") or {}).get("json_schema", {}).get("name", ""))
        text = str(body["messages"][-1]["content"])
        self.forms.append(form)
        if form == "QuestionPlan":
            needs = [{"need": "calibration", "asks": "finding", "queries": ["calibration"]}]
            return envelope(body, content=json.dumps({"needs": needs, "kind": "inventory"}))
        if form == "Screening":
            return envelope(body, content=json.dumps({"screened": [{"need": "N1", "papers": [1, 2, 3]}], "near": []}))
        if form == "ColumnPlan":
            columns = [{"name": name, "asks": f"the {name}", "queries": [name]} for name in ("change", "n")]
            return envelope(body, content=json.dumps({"columns": columns}))
        if form == "ReadRow":
            belongs = self.belongs and "Varga" not in text
            cells = [{"column": "change", "value": "by temperature", "sentences": [1, 2]}]
            row = {"belongs": belongs, "reason": "it changes nothing", "studies": [{"study": "", "cells": cells}]}
            return envelope(body, content=json.dumps(row))
        return super().__call__(body)


@pytest.fixture
def model() -> Tabulator:
    return Tabulator()


@pytest.fixture
def server(model: Tabulator) -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        running.behaviour = model
        yield running


@pytest.fixture
def library(home: Path, server: FakeOpenAI) -> Iterator[Session]:
    settings = Settings(chat_model="fake", chat_base_url=server.base_url, max_retries=0)
    with ExitStack() as stack:
        yield stack.enter_context(citeloom.open_library(home, settings=settings))


def test_the_answer_is_a_short_text_and_a_table_whose_cells_open_to_their_words(
    library: Session, model: Tabulator
) -> None:
    record = citeloom.research(library, QUESTION)
    table = run_async(aload_table(library, record["route"]["screened"]["table_id"]))
    assert len(table["rows"]) == 2 and [item["reason"] for item in table["left_out"]] == ["it changes nothing"]
    rows = [line for line in record["text"].splitlines() if line.endswith("| by temperature | not reported |")]
    assert len(rows) == 2 and "| Study | change | n |" in record["text"]
    for row, stored in zip(rows, table["rows"], strict=True):
        cited = next(item for item in record["citations"] if item["sentence"] == row)
        (chunk,) = library.library.chunks([cited["chunk_id"]])
        assert cited["key"] == stored["key"] and chunk.text[cited["start"] : cited["end"]] == cited["quote"]
        assert cited["quote"] == stored["cells"]["change"]["spans"][0]["quote"]
    assert "below your text" in model.prompts[0] and "change: by temperature" in model.prompts[0]
    assert record["answered"] and "PassageReading" not in model.forms


def test_counts_and_near_misses_are_below_the_table(library: Session) -> None:
    record = citeloom.research(library, QUESTION)
    told, _, below = record["text"].partition(f"Table: {QUESTION}")
    assert "| Study |" in told
    assert "4 papers screened, 2 included, 2 excluded (1 of them near the question)." in below
    assert below.rstrip().endswith("it changes nothing.")
    assert record["coverage"]["papers"] == {"screened": 4, "read": 3, "cited": 2}


def test_a_second_question_after_the_table_command_asks_only_for_the_text(library: Session, model: Tabulator) -> None:
    citeloom.make_table(library, QUESTION)
    model.forms.clear()
    citeloom.research(library, QUESTION)
    assert not {"Screening", "ColumnPlan", "ReadRow"} & {*model.forms}
    model.forms.clear()
    assert citeloom.research(library, QUESTION)["outcome"] == "answered" and model.forms == []


def test_if_no_paper_belongs_the_library_is_searched_as_for_any_question(library: Session, model: Tabulator) -> None:
    model.belongs = False
    record = citeloom.research(library, QUESTION)
    assert "| Study |" not in record["text"] and "PassageReading" in model.forms
