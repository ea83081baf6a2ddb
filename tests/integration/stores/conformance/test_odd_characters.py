"""NUL, lone surrogates and U+FFFF are stored alike on every backend, wherever a text can have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pytest

from citeloom.evidence_tables.cells import TableCell
from citeloom.evidence_tables.extraction import Decision
from citeloom.ingestion.ingest import ingest
from citeloom.models.journal.records import CallRecord, CallResult, RunScope
from citeloom.server.uploaded_files import safe_name
from citeloom.stores.evidence_table_register import StoredCell, StoredPaper
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.metadata_store import ServiceAnswer
from citeloom.stores.run_register import EditedSentence
from citeloom.stores.server_jobs import JobOrder
from tests.support.journal_calls import once
from tests.support.stored_results import finished_text

pytestmark = pytest.mark.attack
ODD: Final = "a\0b\ud800c\udfffd\uffff"
STORED: Final = "a\ufffdb\ufffdc\ufffdd\uffff"


def test_odd_characters_in_runs_and_conversations_are_stored(backend: Home) -> None:
    runs, conversations = backend.runs(), backend.conversations()
    runs.begin("research-1", "f", "research", ODD, {"question": ODD}, ODD)
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
def test_records_with_odd_characters_are_found_again(backend: Home, odd: str) -> None:
    runs = backend.runs()
    runs.begin(f"run-{odd}", "f", "research", "t", {"question": odd}, "v")
    assert runs.get(f"run-{odd}").thread_id.startswith("run-")
    about = runs.latest_about(odd)
    assert about is not None


def test_odd_characters_in_evidence_tables_are_stored(backend: Home) -> None:
    tables = backend.evidence_tables()
    tables.save("table-1", ODD, {"columns": [], "papers": [ODD]})
    cell = StoredCell(ODD, ODD, ODD, "v", TableCell(ODD).as_dict())
    tables.save_row("table-1", StoredPaper(ODD, "v", asdict(Decision("near", ODD))), [cell])
    assert tables.edit_cell("table-1", cell).revision == 1
    assert (tables.get("table-1").question, tables.get("table-1").plan) == (STORED, {"columns": [], "papers": [STORED]})
    (stored,) = tables.cells("table-1")
    assert (stored.key, stored.study, stored.column_name, stored.cell["value"]) == (STORED,) * 4
    assert tables.papers("table-1")[STORED].decision["reason"] == STORED


def test_odd_characters_in_edits_and_metadata_are_stored(backend: Home) -> None:
    backend.runs().edit("research-1", EditedSentence(0, ODD, {"words": ODD}))
    (edit,) = backend.runs().edits("research-1")
    assert (edit.text, edit.checked) == (STORED, {"words": STORED})
    stores = backend.open_library()
    stores.metadata.keep_answer("crossref", ODD, ServiceAnswer(200, {"title": ODD}, 1.0))
    found = stores.metadata.answer("crossref", ODD)
    assert found is not None and found.body == {"title": STORED}
    stores.close()


async def test_odd_characters_in_journal_answers_are_stored(backend: Home) -> None:
    async def answer() -> CallResult:
        return CallResult(ODD, 1, 1)

    record = CallRecord("key", "chat", "http://host/v1", ODD)
    with backend.open_journal() as journal:
        await once(journal, record, RunScope(ODD), answer)
        assert (await once(journal, record, RunScope(ODD), answer)).payload == STORED
        assert [row.model for row in await journal.spending()] == [STORED]


async def test_odd_characters_in_a_papers_text_are_stored(open_library: Callable[[], Library], tmp_path: Path) -> None:
    texts = {"nul": "\0", "half": "\ud800", "whole": "\uffff"}
    for name, odd in texts.items():
        (tmp_path / f"{name}.md").write_bytes(f"# A title\n\nDucks{odd} swim.\n".encode("utf-8", "surrogatepass"))
    library = open_library()
    report = await ingest(library, [tmp_path / f"{name}.md" for name in texts])
    assert [refusal.reason.split(" (")[0] for refusal in report.refused] == ["is binary, not text", "is not UTF-8"]
    (key,) = library.records()
    assert "Ducks\uffff swim." in library.paper_chunks(key)[0].text


def test_odd_characters_in_request_keys_and_upload_names_are_stored(backend: Home) -> None:
    server = backend.join_servers()
    try:
        assert server.keys.claim(ODD, ODD) is None
        server.keys.commit(ODD, JobOrder("job", "run", {"question": ODD}))
        use = server.keys.claim(ODD, ODD)
        assert use is not None and use.request == STORED
        assert use.order == JobOrder("job", "run", {"question": STORED})
        server.endings.add(ODD, ODD)
        assert not server.endings.ended_by_another(ODD, ODD) and server.endings.ended_by_another(ODD, "other")
        folder = server.uploads.folder("ingest-000000000000")
        folder.mkdir(parents=True)
        (folder / safe_name(f"{ODD}.md")).write_text("# A title")
        server.uploads.publish(folder.name)
        assert server.uploads.names(folder.name) == [safe_name(f"{ODD}.md")]
    finally:
        server.leave()
