"""Many threads of several processes on one journal: nothing is lost, nobody is told that it is locked."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from citeloom.models.journal import Journal
from citeloom.models.journal_file import connect
from tests.support.journal_load import PAYLOAD, crowd


async def test_of_20_000_answers_none_is_lost(tmp_path: Path) -> None:
    processes, threads, calls = 4, 32, 157
    path = tmp_path / "journal.sqlite"
    told = crowd(path, processes, threads, calls)
    assert [process["errors"] for process in told] == [[]] * processes
    each = threads * calls
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*), count(DISTINCT key) FROM answers").fetchone() == (processes * each,) * 2
        assert db.execute("SELECT DISTINCT payload FROM answers").fetchall() == [(PAYLOAD,)]
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with Journal.open(path) as journal:
        spent = await journal.spending()
    # What was reserved before each answer is counted once, as what it cost.
    assert [(row.run, row.paid, row.input_tokens, row.held_calls, row.held_input) for row in spent] == [
        (f"p{number}", each, 100 * each, 0, 0) for number in range(processes)
    ]


def test_many_may_make_the_file_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(12)

    def make(path: Path) -> None:
        together.wait()
        connect(path).close()

    with ThreadPoolExecutor(12) as makers:
        for number in range(10):
            list(makers.map(make, [tmp_path / f"{number}.sqlite"] * 12))
