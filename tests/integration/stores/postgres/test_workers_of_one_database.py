"""Several processes on one database: no answer is paid for twice, and a lost connection loses nothing committed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from citeloom.errors import PausedError
from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import CallRecord, CallResult, RunScope
from citeloom.settings.addresses import DatabaseUrl, parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.postgres import postgres_catalog
from citeloom.stores.postgres.database import ConnectionLostError, Database
from citeloom.stores.postgres.postgres_journal import LibraryJournalConnection
from tests.support.call_workers import call_workers
from tests.support.journal_calls import once
from tests.support.library_fixtures import papers
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed: make engines")
RUN = RunScope("run")
RECORD = CallRecord("a", "chat", "http://host/v1", "m")
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s"


@pytest.fixture
def backend(url: str) -> Home:
    return find_home(parse_home(url)).prepare()


@pytest.fixture
def journal(backend: Home) -> Iterator[Journal]:
    with backend.open_journal() as opened:
        yield opened


@pytest.mark.parametrize(("workers", "calls"), [(2, 200), pytest.param(4, 5_000, marks=pytest.mark.long)])
async def test_no_answer_is_paid_for_twice(
    url: str, journal: Journal, workers: int, calls: int, tmp_path: Path
) -> None:
    with call_workers(url, tmp_path / "paid", calls, [[]] * workers) as started:
        assert started.ended(*range(workers)) == [0] * workers
        paid = started.paid()
    assert sorted(key for keys in paid for key in keys) == sorted(f"call-{number}" for number in range(calls))
    assert all(paid), "every worker did a part"
    spent = await journal.spending()
    assert sum(row.paid for row in spent) == calls
    assert sum(row.reused for row in spent) == (workers - 1) * calls


def test_after_one_lost_connection_no_other_in_the_pool_fails(url: str) -> None:
    address = parse_home(url)
    assert isinstance(address, DatabaseUrl)
    database = Database(address, 3, vectors=False)
    with ExitStack() as stack:
        for connection in [stack.enter_context(database.connection()) for _ in range(3)]:
            (process,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
            stack.callback(cut, url, process)
    with suppress(ConnectionLostError), database.connection() as connection:
        connection.execute("SELECT 1")
    for _ in range(3):
        with database.connection() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    database.close()


async def backend_of_journal(journal: Journal) -> int:
    return int(await journal.submit(lambda db: db.execute("SELECT pg_backend_pid()").fetchone()[0]))


def cut(url: str, process: int) -> None:
    """End a connection at the server, as a restart or a lost network does."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(CUT, (process,))


async def test_a_connection_lost_while_idle_is_opened_again(url: str, journal: Journal) -> None:
    cut(url, await backend_of_journal(journal))

    async def pay() -> CallResult:
        return CallResult("x", 1, 1)

    assert (await once(journal, RECORD, RUN, pay)).paid
    assert not (await once(journal, RECORD, RUN, pay)).paid


async def test_a_connection_lost_while_the_model_answers_loses_no_answer(url: str, journal: Journal) -> None:
    async def pay() -> CallResult:
        cut(url, await backend_of_journal(journal))
        return CallResult("x", 1, 1)

    assert (await once(journal, RECORD, RUN, pay)).paid
    assert (await journal.usage(RUN)).llm_calls == 1


async def test_a_connection_lost_within_a_transaction_repeats_it(url: str, journal: Journal) -> None:
    tries = 0

    def work(db: Any) -> int:
        nonlocal tries
        tries += 1
        (process,) = db.execute("SELECT pg_backend_pid()").fetchone()
        db.execute("INSERT INTO beginnings VALUES (?, 1)", ("somebody",))
        if tries == 1:
            cut(url, int(process))
        return len(db.execute("SELECT 1 FROM beginnings").fetchall())

    assert await journal.submit(work) == 1
    assert tries == 2


@pytest.mark.parametrize("arrived", [True, False])
async def test_an_answer_is_counted_once_if_the_connection_is_lost_during_the_commit(
    url: str, journal: Journal, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    """Whether the server has committed or not, the answer is stored and counted exactly once."""
    execute, cuts = LibraryJournalConnection.execute, threading.Semaphore(1)

    def losing(self: LibraryJournalConnection, sql: str, *parameters: Any) -> Any:
        inserted = sql == "COMMIT" and execute(self, "SELECT 1 FROM answers").fetchone()
        if not inserted or not cuts.acquire(blocking=False):
            return execute(self, sql, *parameters)
        (process,) = execute(self, "SELECT pg_backend_pid()").fetchone()
        if arrived:
            execute(self, "COMMIT")
        cut(url, int(process))
        return execute(self, "SELECT 1")  # the connection's answer never comes

    monkeypatch.setattr(LibraryJournalConnection, "execute", losing)

    async def pay() -> CallResult:
        return CallResult("x", 1, 1)

    assert (await once(journal, RECORD, RUN, pay)).paid
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (1,)
    assert (await journal.usage(RUN)).llm_calls == 1


async def test_a_run_pauses_when_its_checkpoints_lose_the_database(url: str, backend: Home) -> None:
    with pytest.raises(ConnectionLostError) as lost:
        async with backend.open_checkpoints() as saver:
            connection: Any = getattr(saver, "conn")  # noqa: B009
            cut(url, connection.info.backend_pid)
            await saver.adelete_thread("a")
    assert isinstance(lost.value, PausedError) and lost.value.exit_code == 3
    async with backend.open_checkpoints() as saver:
        await saver.adelete_thread("a")


async def test_a_lock_whose_connection_was_lost_can_be_taken(url: str, backend: Home) -> None:
    async with backend.run_lock("run-1"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
                " AND pid IN (SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%')"
            )
        async with backend.run_lock("run-1"):
            assert backend.run_under_way("run-1")
    assert not backend.run_under_way("run-1")


async def test_an_ingest_that_loses_the_database_leaves_only_complete_papers(
    url: str, papers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library.open(find_home(parse_home(url)), WordEmbedding())
    write = postgres_catalog.write_postings

    def losing(cursor: Any, chunks: Any) -> None:
        if "grace2021" in chunks:
            cut(url, cursor.connection.info.backend_pid)
        write(cursor, chunks)

    with monkeypatch.context() as patch:
        patch.setattr(postgres_catalog, "write_postings", losing)
        patch.setattr("citeloom.ingestion.indexing._CHUNKS_PER_WRITE", 1)  # each paper in a transaction of its own
        with pytest.raises(ConnectionLostError) as lost:
            await ingest(library, [papers])
    assert "postgres:@" not in str(lost.value)
    assert [paper.key for paper in library.papers()] in ([], ["ada2020"])
    assert [finding for finding in examine(library) if finding.level == "problem"] == []
    await ingest(library, [papers])  # on new connections of the same pool
    assert [paper.key for paper in library.papers()] == ["ada2020", "grace2021"]
    assert {name.partition(":")[0] for name in library.fulltext.entries()} == {"ada2020", "grace2021"}
    library.close()
