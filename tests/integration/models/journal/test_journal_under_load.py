"""Many threads of several processes on one journal: nothing is lost, and no caller sees that it is locked."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from citeloom.models.journal.journal import Journal
from citeloom.models.journal.journal_database import JournalFile
from tests.support.journal_load import PAYLOAD, crowd


@pytest.mark.long
async def test_none_of_20_000_answers_is_lost(tmp_path: Path) -> None:
    processes, threads, calls = 4, 32, 157
    path = tmp_path / "journal.sqlite"
    told = crowd(path, processes, threads, calls)
    assert [process["errors"] for process in told] == [[]] * processes
    each = threads * calls
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*), count(DISTINCT key) FROM answers").fetchone() == (processes * each,) * 2
        assert db.execute("SELECT DISTINCT payload FROM answers").fetchall() == [(PAYLOAD,)]
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with Journal(path) as journal:
        spent = await journal.spending()
    # What was reserved before each answer is counted once, as what it cost.
    assert [(row.run, row.paid, row.input_tokens, row.reserved_calls, row.reserved_input) for row in spent] == [
        (f"p{number}", each, 100 * each, 0, 0) for number in range(processes)
    ]


def test_another_process_may_create_the_file_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE begun (x)")
        other.execute("BEGIN IMMEDIATE")
        # It ends as soon as somebody waits for it.
        monkeypatch.setattr("citeloom.sqlite.time.sleep", lambda _: other.execute("ROLLBACK"))
        JournalFile(path).connect().close()


async def test_many_tasks_store_answers_concurrently(tmp_path: Path) -> None:
    """A cursor freed by the caller's thread reset the statement that the journal's thread was executing."""
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with Journal(tmp_path / "journal.sqlite") as journal:

            async def remember(task: int) -> None:
                for batch in range(60):
                    await journal.remember({f"{task}-{batch}-{row}": "full" for row in range(30)}, "judge")

            await asyncio.gather(*(remember(task) for task in range(8)))
    finally:
        sys.setswitchinterval(switching)
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as db:
        assert db.execute("SELECT count(*), count(DISTINCT key) FROM answers").fetchone() == (14_400,) * 2
