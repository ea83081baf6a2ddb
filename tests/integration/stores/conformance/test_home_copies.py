"""Everything that a home holds is copied to another one, compared, and never mixed with other content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from citeloom.documents import Paper
from citeloom.documents.publication_status import Notice
from citeloom.evidence_tables.cells import TableCell
from citeloom.evidence_tables.extraction import Decision
from citeloom.ingestion import home_copy
from citeloom.ingestion.home_copy import HOME_TABLES, CopyError, copy_home
from citeloom.ingestion.ingest import ingest
from citeloom.models.journal.budget import Budget, BudgetLimits
from citeloom.models.journal.records import CallRecord, CallResult, Reservation, RunScope
from citeloom.stores.author_memory import AuthorMemory
from citeloom.stores.evidence_table_register import StoredCell, StoredPaper
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.metadata_store import ServiceAnswer
from citeloom.stores.run_register import EditedSentence
from citeloom.stores.tables import acting
from tests.support.journal_calls import once
from tests.support.library_fixtures import papers
from tests.support.stored_results import finished_text
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]
PAPER = Paper("ada2020", "Looms", ("Ada Lovelace",), 2020, doi="10.5555/x")
STATE: dict[str, Any] = {"need": "looms", "scores": [0.1, 2], "found": {"b": 1, "a": None}, "text": "naïve ✓"}


async def pay() -> CallResult:
    return CallResult('"answer"', 10, 5)


async def fail() -> CallResult:
    raise AssertionError("an answered call was made again")


def record(key: str) -> CallRecord:
    return CallRecord(key, "chat", "http://host/v1", "some-model")


def begin(home: Home, thread_id: str) -> None:
    request = {"question": "Why?", "title": "50% of “looms”"}
    home.runs().begin(
        thread_id=thread_id,
        fingerprint="f",
        section="research",
        title="A title",
        request=request,
        library_version="v1",
        fresh=False,
    )


async def fill(home: Home, library: Library) -> None:
    """Leave something of every kind in a home."""
    backend = home
    for thread_id in ("research-2", "research-1"):
        begin(home, thread_id)
    backend.runs().mark("research-2", "finished", result=finished_text(cited=("ada2020",)))
    backend.runs().edit("research-2", EditedSentence(4, "Words\x00 of mine.", {"verdict": "supported"}))
    backend.runs().note_library("v1", {"ada2020": "hash"})
    backend.runs().keep_comparison("research-2", "stamp", {"items": [], "since": "v1"})
    AuthorMemory(home, "ada").put("participants, not subjects")
    accounts, nobody = backend.accounts(), acting.set("ada")
    accounts.accept(accounts.invite("ada", "owner"), "hash")
    accounts.grant("token", "ada")
    accounts.keep_note("ada", "ada2020", "Mine\x00 alone.")
    accounts.log("ada", "POST /api/v1/research", "200")
    backend.conversations().begin("chat-1")
    acting.reset(nobody)
    backend.conversations().keep("chat-1", 1, "Why?", "Why is it so?", finished_text())
    backend.conversations().label("chat-1", name="Reasons", archived=True)
    backend.conversations().share("chat-1", ["bo"])
    tables = backend.evidence_tables()
    tables.save("table-1", "Which looms?", {"columns": [], "papers": []})
    cell = StoredCell("ada2020", "", "threads\x00", "v", TableCell("50").as_dict())
    tables.save_row("table-1", StoredPaper("ada2020", "v", asdict(Decision("included"))), [cell])
    tables.edit_cell("table-1", replace(cell, cell=TableCell("60", status="edited").as_dict()))
    backend.written_files().note([b"ours"])
    with backend.open_journal() as journal:
        for number in range(5):
            await once(journal, record(f"k{number}"), RunScope("research-2"), pay)
        await once(journal, record("k0"), RunScope("research-1", fresh=True), pay)
        async with Budget(BudgetLimits(calls=9), {}, journal, "research-1").reserve(
            Reservation("research-1", record("lost"), 1, 10, 5)
        ):
            pass  # in flight when the home was left
    library.metadata.keep_answer("Crossref", "/works/x", ServiceAnswer(200, {"title": "Looms"}, 1.0))
    library.metadata.keep_identity(replace(PAPER, doi=""), "10.5555/x", 0.97, "Crossref", 2.0)
    library.metadata.keep_work("10.5555/x", "Crossref", {"citations": 5}, [Notice("retraction", "Crossref")], [], 1.0)
    library.metadata.replace_notices("Retraction Watch", [], "stamp")
    async with backend.open_checkpoints() as saver:
        config: Any = {"configurable": {"thread_id": "research-1", "checkpoint_ns": ""}}
        for step in range(3):
            values = {**STATE, "step": step}
            versions = dict.fromkeys(values, f"{step + 1:032}.5")
            checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}
            config = await saver.aput(config, checkpoint, {"step": step, "source": "loop"}, versions)  # type: ignore[attr-defined]
        await saver.aput_writes(config, [("need", {"of": 1}), ("need", "two")], "task", "~path")  # type: ignore[attr-defined]


@pytest.fixture
async def source(papers: Path, tmp_path: Path) -> Library:
    """A library in a folder, with something of every kind in its home."""
    library = Library.open(FolderHome(tmp_path / "source"), WordEmbedding())
    await ingest(library, [papers])
    await fill(library.home, library)
    return library


@pytest.fixture
def opened(source: Library, open_library: Callable[[], Library]) -> Iterator[tuple[Library, Library]]:
    yield source, open_library()
    source.close()


async def test_a_copy_there_and_back_loses_nothing(opened: tuple[Library, Library], tmp_path: Path) -> None:
    source, target = opened
    papers, rows = await copy_home(source, target)
    back = Library.open(FolderHome(tmp_path / "back"), WordEmbedding())
    papers_again, rows_again = await copy_home(target, back)
    assert papers.copied == papers_again.copied == 2
    assert rows == rows_again and rows["checkpoints"] == 3
    empty = {name for name, count in rows.items() if not count}
    assert empty <= {"contexts", "metadata_versions"}, "every other table has rows to compare"
    for copy in (target, back):
        await same_as_filled(copy)
    back.close()


async def same_as_filled(library: Library) -> None:
    backend = library.home
    finished, unfinished = backend.runs().get("research-2"), backend.runs().get("research-1")
    assert (finished.status, unfinished.status) == ("finished", "running")
    assert finished.result == finished_text(cited=("ada2020",))
    assert unfinished.request["title"] == "50% of “looms”"
    latest = backend.runs().latest("f")
    assert latest is not None and latest.thread_id == "research-1", "the order in which they began"
    (edit,) = backend.runs().edits("research-2")
    assert edit.text.endswith("of mine.") and edit.checked == {"verdict": "supported"}
    assert backend.runs().library("v1") == {"ada2020": "hash"}
    assert backend.runs().comparisons() == {"research-2": ("stamp", {"items": [], "since": "v1"})}
    assert [note.text for note in AuthorMemory(library.home, "ada").notes()] == ["participants, not subjects"]
    (cell,) = backend.evidence_tables().cells("table-1")
    assert (cell.edited, cell.revision, cell.cell["value"]) == (True, 1, "60")
    accounts = backend.accounts()
    assert accounts.get("ada").password == "hash" and len(accounts.secrets_of("ada")) == 1
    assert (accounts.note("ada", "ada2020") or "").endswith("alone.") and backend.runs().owned_ids("ada") == ["chat-1"]
    assert [line["outcome"] for line in accounts.audit_lines()] == ["200"]
    (turn,) = backend.conversations().turns("chat-1")
    (entry,) = backend.conversations().all("reasons WHY")
    assert (entry.title, entry.archived) == ("Reasons", True)
    assert (turn.asked, turn.answered) == ("Why?", False)
    with backend.open_journal() as journal:
        for number in range(5):
            assert not (await once(journal, record(f"k{number}"), RunScope("another"), fail)).paid
        spent = {
            row.run: (row.paid, row.reserved_calls) for row in await journal.spending(["research-1", "research-2"])
        }
        assert spent == {"research-1": (1, 1), "research-2": (5, 0)}
        assert (await once(journal, record("new"), RunScope("another"), pay)).paid, "new answers get ids of their own"
        await journal.forget("another")
    assert library.metadata.answer("Crossref", "/works/x") == ServiceAnswer(200, {"title": "Looms"}, 1.0)
    assert library.metadata.statuses([PAPER])["ada2020"].retracted
    async with backend.open_checkpoints() as saver:
        found = await saver.aget_tuple({"configurable": {"thread_id": "research-1", "checkpoint_ns": ""}})  # type: ignore[attr-defined]
        assert found.checkpoint["channel_values"] == {**STATE, "step": 2}
        assert found.metadata["step"] == 2 and found.parent_config is not None
        written = [(channel, value) for _, channel, value in found.pending_writes]
        assert written == [("need", {"of": 1}), ("need", "two")]


@pytest.mark.parametrize("table", ["answers", "runs", "metadata_notices", "checkpoint_writes"])
async def test_an_interrupted_copy_continues(
    opened: tuple[Library, Library], monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    source, target = opened
    monkeypatch.setattr(home_copy, "_BYTES_PER_COMMIT", 1)
    records = type(target.home)
    put, interrupted = records.put, []

    def interrupt(self: Any, of: Any, rows: Any) -> None:
        if of.name == table and (interrupted or table != "answers"):
            raise InterruptedError(table)
        interrupted.append(of.name)
        put(self, of, rows)

    with monkeypatch.context() as patch:
        patch.setattr(records, "put", interrupt)
        with pytest.raises(InterruptedError, match=table):
            await copy_home(source, target)
    done: list[str] = []
    await copy_home(source, target, done.append)
    assert not [line for line in done if line.startswith("copied answers") and line.endswith(" 6")]
    await same_as_filled(target)


async def test_copying_again_adds_what_is_new(opened: tuple[Library, Library]) -> None:
    source, target = opened
    await copy_home(source, target)
    source.home.runs().mark("research-1", "finished", result=finished_text("Done."))
    done: list[str] = []
    await copy_home(source, target, done.append)
    assert done == ["copied runs: 1"]
    assert target.home.runs().get("research-1").result == finished_text("Done.")


async def test_homes_are_never_mixed(opened: tuple[Library, Library]) -> None:
    source, target = opened
    begin(target.home, "research-9")
    with pytest.raises(CopyError, match=r"holds runs that .* does not: research-9") as refused:
        await copy_home(source, target)
    assert "--papers-only" in refused.value.help
    assert target.papers() == [] and len(target.home.runs().all()) == 1


async def test_a_run_in_progress_is_not_copied(opened: tuple[Library, Library]) -> None:
    source, target = opened
    async with source.home.run_lock("research-1"):
        with pytest.raises(CopyError, match="research-1 is in progress"):
            await copy_home(source, target)
    assert target.papers() == []


def test_every_table_of_a_home_is_copied(home: Home) -> None:
    """A table that a later version adds must be copied too, or named here as one of the library's own."""
    if not hasattr(home, "url"):
        pytest.skip("the tables of files are those of the database")
    import psycopg

    library = "facts revision papers sections figures images chunks passages postings word_totals schema_versions"
    checkpoints = "checkpoints checkpoint_blobs checkpoint_migrations"
    servers = "servers server_jobs server_events request_keys uploads endings"
    milvus = "searched staged outdated word_sums word_counts"
    with psycopg.connect(home.url.secret) as connection:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        found = {name for (name,) in connection.execute(query)}
    assert found - set(f"{library} {checkpoints} {servers} {milvus}".split()) == {table.name for table in HOME_TABLES}
