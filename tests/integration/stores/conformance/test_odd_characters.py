"""NUL, lone surrogates and U+FFFF are stored alike on every backend, wherever a text can have them."""

from __future__ import annotations

from typing import Final

import pytest

from citeloom.models.journal.records import CallRecord, CallResult, RunScope
from citeloom.stores.home_protocols import Backend
from citeloom.stores.metadata_records import Answer
from citeloom.stores.run_records import EditedSentence, NewRun
from tests.support.journal_calls import once
from tests.support.stored_results import finished_text

ODD: Final = "a\0b\ud800c\udfffd\uffff"
STORED: Final = "a\ufffdb\ufffdc\ufffdd\uffff"


def test_the_texts_of_runs_and_conversations(backend: Backend) -> None:
    runs, conversations = backend.runs(), backend.conversations()
    runs.begin(NewRun("research-1", "f", "research", ODD, {"question": ODD}, ODD))
    runs.mark("research-1", "finished", detail=ODD, result=finished_text(ODD, (ODD,)))
    run = runs.get("research-1")
    assert (run.title, run.detail, run.library_version) == (STORED, STORED, STORED)
    assert (run.request["question"], run.result) == (STORED, finished_text(STORED, (STORED,)))
    assert [head.title for head in runs.heads()] == [STORED]
    conversations.begin("chat-1")
    conversations.keep("chat-1", 1, ODD, ODD, finished_text(ODD))
    (turn,) = conversations.turns("chat-1")
    assert (turn.asked, turn.question, turn.record["text"]) == (STORED, STORED, STORED)
    assert conversations.get("chat-1").title == STORED


@pytest.mark.parametrize("odd", [ODD, "\0", "\ud800"])
def test_what_is_looked_up_by_an_odd_text_is_found(backend: Backend, odd: str) -> None:
    runs = backend.runs()
    runs.begin(NewRun(f"run-{odd}", "f", "research", "t", {"question": odd}, "v"))
    assert runs.get(f"run-{odd}").thread_id.startswith("run-")
    about = runs.latest_about(odd)
    assert about is not None


def test_edits_and_metadata(backend: Backend) -> None:
    edits = backend.edited_sentences()
    edits.keep("research-1", EditedSentence(0, ODD, {"words": ODD}))
    (edit,) = edits.of("research-1")
    assert (edit.text, edit.checked) == (STORED, {"words": STORED})
    stores = backend.open_library()
    stores.metadata.keep_answer("crossref", ODD, Answer(200, {"title": ODD}, 1.0))
    found = stores.metadata.answer("crossref", ODD)
    assert found is not None and found.body == {"title": STORED}
    stores.close()


async def test_answers_in_the_journal(backend: Backend) -> None:
    async def answer() -> CallResult:
        return CallResult(ODD, 1, 1)

    record = CallRecord("key", "chat", "http://host/v1", ODD)
    with backend.open_journal() as journal:
        await once(journal, record, RunScope(ODD), answer)
        assert (await once(journal, record, RunScope(ODD), answer)).payload == STORED
        assert [row.model for row in await journal.spending()] == [STORED]
