"""The connection is lost in the middle of each kind of write: nothing is lost, and a repeated write is stored once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from citeloom.ingestion.home_copy import copy_home
from citeloom.ingestion.ingest import ingest
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import FolderHome, find_home
from citeloom.stores.library import Library
from citeloom.stores.metadata_store import ServiceAnswer
from citeloom.stores.postgres.database import ConnectionLostError, Database, DatabaseTables
from citeloom.stores.run_register import EditedSentence
from tests.support.library_fixtures import papers
from tests.support.stored_results import finished_text
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]
psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed: make engines")
RUN: Any = ("research-1", "f", "research", "A title", {"question": "Why?"}, "v1")
RECORD = finished_text()
Write = Callable[[Library], object]
WRITES: dict[str, tuple[str, Write]] = {
    "a run begins": ("runs", lambda library: library.home.runs().begin(*RUN)),
    "a turn": ("turns", lambda library: library.home.conversations().keep("c", 1, "Why?", "Why?", RECORD)),
    "an edit": ("edits", lambda library: library.home.runs().edit("r", EditedSentence(1, "x"))),
    "a file's hash": ("written", lambda library: library.home.written_files().note([b"ours"])),
    "an answer of a service": (
        "metadata_answers",
        lambda library: library.metadata.keep_answer("Crossref", "/x", ServiceAnswer(200, {}, 1.0)),
    ),
}


@pytest.fixture
def library(url: str) -> Iterator[Library]:
    opened = Library.open(find_home(parse_home(url)), WordEmbedding())
    yield opened
    opened.close()


def cut(url: str, process: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (process,))


def count(url: str, table: str) -> int:
    with psycopg.connect(url) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def losing(monkeypatch: pytest.MonkeyPatch, url: str, at: int = 1) -> None:
    """Cut the connection before a transaction is committed: the `at`th, counted from 1."""
    seen = 0

    def wrap(owner: Any) -> None:
        transaction = owner.transaction

        @contextmanager
        def cutting(self: Any) -> Iterator[Any]:
            nonlocal seen
            with transaction(self) as connection:
                yield connection
                raw = getattr(connection, "_connection", connection)
                seen += 1
                if seen == at:
                    cut(url, raw.info.backend_pid)

        monkeypatch.setattr(owner, "transaction", cutting)

    wrap(DatabaseTables)
    wrap(Database)


@pytest.mark.parametrize("what", WRITES)
def test_a_write_that_was_not_committed_is_absent_and_can_be_repeated(
    url: str, library: Library, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    table, write = WRITES[what]
    with monkeypatch.context() as patch:
        losing(patch, url)
        with pytest.raises(ConnectionLostError) as lost:
            write(library)
    assert "run the same command again" in lost.value.help and lost.value.exit_code == 3
    assert count(url, table) == 0
    for _ in range(2):  # as after a commit whose confirmation was lost
        write(library)
    assert count(url, table) == 1


def test_a_lost_status_update_leaves_the_run_as_it_was(
    url: str, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = library.home.runs()
    runs.begin(*RUN)
    with monkeypatch.context() as patch:
        losing(patch, url)
        with pytest.raises(ConnectionLostError):
            runs.mark("research-1", "finished", result=RECORD)
    assert (runs.get("research-1").status, runs.get("research-1").result) == ("running", None)
    runs.mark("research-1", "finished", result=RECORD)
    assert runs.get("research-1").result == RECORD


async def test_a_lost_checkpoint_leaves_the_previous_one(url: str, library: Library) -> None:
    backend = library.home
    config: Any = {"configurable": {"thread_id": "r", "checkpoint_ns": ""}}
    first, second = (
        {**empty_checkpoint(), "channel_values": {"step": n}, "channel_versions": {"step": n}} for n in (1, 2)
    )
    async with backend.open_checkpoints() as saver:
        config = await saver.aput(config, first, {"step": 1}, {"step": 1})  # type: ignore[attr-defined]
    with pytest.raises(ConnectionLostError):
        async with backend.open_checkpoints() as saver:
            cut(url, saver.conn.info.backend_pid)  # type: ignore[attr-defined]
            await saver.aput(config, second, {"step": 2}, {"step": 2})  # type: ignore[attr-defined]
    async with backend.open_checkpoints() as saver:
        found = await saver.aget_tuple({"configurable": {"thread_id": "r", "checkpoint_ns": ""}})  # type: ignore[attr-defined]
        assert found.checkpoint["channel_values"] == {"step": 1}
        for _ in range(2):
            await saver.aput(config, second, {"step": 2}, {"step": 2})  # type: ignore[attr-defined]
    assert count(url, "checkpoints") == 2


@pytest.mark.parametrize("at", [1, 2, 3])
async def test_a_copy_that_loses_the_database_can_continue(
    url: str, library: Library, papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    source = Library.open(FolderHome(tmp_path / "source"), WordEmbedding())
    await ingest(source, [papers])
    for _, write in WRITES.values():
        write(source)
    with monkeypatch.context() as patch:
        losing(patch, url, at)
        with pytest.raises(ConnectionLostError):
            await copy_home(source, library)
    _, rows = await copy_home(source, library)
    assert rows | dict.fromkeys((table for table, _ in WRITES.values()), 1) == rows
    assert {paper.key for paper in library.papers()} == {"ada2020", "grace2021"}
    source.close()
