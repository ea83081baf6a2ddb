"""Questions for a number, a name, a yes or no and a definition, without a model: quoted rightly, answered when so."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from citeloom.config import Settings
from citeloom.graph.session import open_session
from citeloom.runs.execution import run_request
from citeloom.runs.research import ResearchRequest
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from tests.support.kinds_of_answer import LabelledAnswer, labelled_answers

# What one run of all 38 reached on 2026-11-22 (21 and 34), less one.
FEWEST_QUOTED = 20
FEWEST_RIGHT = 33

Answers = list[tuple[LabelledAnswer, dict[str, Any]]]


@pytest.fixture(scope="module")
def answers(corpus_library: Library, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Each question with the JSON of its answer."""
    home = Path(shutil.copytree(corpus_library.home.root, tmp_path_factory.mktemp("kinds") / ".citeloom"))

    async def ask() -> Answers:
        with open_session(Settings(), Home(home), create=False) as session:
            return [
                (item, (await run_request(ResearchRequest(item.question), session)).record)
                for item in labelled_answers()
            ]

    return asyncio.run(ask())


def test_the_sentence_that_answers_is_quoted(answers: Answers) -> None:
    asked = [(item, record) for item, record in answers if item.has_answer]
    missed = [item.question for item, record in asked if not item.is_quoted_in(record)]
    assert len(asked) == 30 and len(asked) - len(missed) >= FEWEST_QUOTED, missed


def test_a_question_counts_as_answered_where_that_sentence_is_quoted_and_nowhere_else(answers: Answers) -> None:
    wrong = [item.question for item, record in answers if record["answered"] != item.is_quoted_in(record)]
    assert len(answers) == 38 and len(answers) - len(wrong) >= FEWEST_RIGHT, wrong


def test_what_no_paper_answers_is_not_called_answered(answers: Answers) -> None:
    assert [item.question for item, record in answers if not item.has_answer and record["answered"]] == []
