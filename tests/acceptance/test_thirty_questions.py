"""Thirty questions over the 57 real papers without a model: routed, answered from the papers expected, or not."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from citeloom.documents.plain_text import format_quote
from citeloom.graph.session import open_session
from citeloom.runs.execution import run_request
from citeloom.runs.run_requests import ResearchRequest
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from tests.support.questions import LabelledQuestion, labelled_questions

MOST_QUOTED = 45  # words

Answers = list[tuple[LabelledQuestion, dict[str, Any]]]


@pytest.fixture(scope="module")
def answers(corpus_library: Library, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Each question with the JSON of its answer."""
    home = tmp_path_factory.mktemp("questions") / ".citeloom"
    shutil.copytree(corpus_library.home.root, home)

    async def ask() -> Answers:
        with open_session(Settings(), FolderHome(Path(home)), create=False) as session:
            return [
                (item, (await run_request(ResearchRequest(item.question), session)).record)
                for item in labelled_questions()
            ]

    return asyncio.run(ask())


def cited(record: dict[str, Any]) -> set[str]:
    return {citation["key"] for citation in record["citations"]}


def test_the_router_is_right_on_at_least_27_questions(answers: Answers) -> None:
    wrong = [item.question for item, record in answers if item.track not in ("none", record["route"]["track"])]
    assert len(wrong) <= 3, wrong


def test_at_least_22_of_25_answers_cite_an_expected_paper(answers: Answers) -> None:
    asked = [(item, record) for item, record in answers if item.expected]
    missed = [item.question for item, record in asked if not cited(record) & set(item.expected)]
    assert len(asked) == 25 and len(missed) <= 3, missed


def test_a_question_outside_the_library_is_not_answered(answers: Answers) -> None:
    beyond = [record for item, record in answers if not item.expected]
    assert len(beyond) == 5
    for record in beyond:
        assert record["answered"] is False and record["citations"] == record["references"] == [], record["question"]
        assert record["text"].startswith("Nothing near: no passage of the library is near to this question")


def test_every_statement_quotes_its_source_with_its_place(answers: Answers, corpus_library: Library) -> None:
    for _, record in answers:
        for citation in record["citations"]:
            (chunk,) = corpus_library.chunks([citation["chunk_id"]])
            assert chunk.text[citation["start"] : citation["end"]] == citation["quote"]
            assert len(citation["quote"].split()) <= MOST_QUOTED
            quoted = format_quote(chunk.text, citation["start"], citation["end"])
            assert f"“{quoted}” [{citation['number']}" in record["text"]
            (reference,) = [item for item in record["references"] if item["key"] == citation["key"]]
            assert reference["label"] == str(citation["number"])
            assert {"page": citation["page"], "section": citation["section"]} in reference["places"]
        assert "citation needed" not in record["text"]
        assert {item["key"] for item in record["references"]} == cited(record)
        assert [item["label"] for item in record["references"]] == [
            str(number) for number in range(1, len(record["references"]) + 1)
        ]
        assert all(item["title"] in item["text"] or item["title"][:20] in item["text"] for item in record["references"])
