"""The registry of runs: the request, status and result of each."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any, Final

from ...sqlite import RegisterFile, cites
from ...table_columns import dump_json
from ..run_records import PLOT_SET, RUNS, CitingRun, NewRun, RunHead, RunRecord, RunStatus, UnknownRunError

RUNS_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS runs (
    thread_id TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    section TEXT NOT NULL,
    title TEXT NOT NULL,
    request TEXT NOT NULL,
    library_version TEXT NOT NULL,
    fresh INTEGER NOT NULL,
    status TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '',
    started_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    result TEXT
);
CREATE INDEX IF NOT EXISTS runs_by_fingerprint ON runs (fingerprint, started_at);
CREATE INDEX IF NOT EXISTS runs_with_plots ON runs (thread_id) WHERE instr(request, 'plots-') > 0;
"""
_HEAD = "thread_id, section, title, status, detail, library_version, fresh, started_at, updated_at"
_COLUMNS = (
    "thread_id, fingerprint, section, title, request, library_version, fresh, status, detail, started_at, updated_at,"
    " result"
)


class RunRegister:
    """Runs in a SQLite file; blocking and thread-safe."""

    def __init__(self, path: Path) -> None:
        self._file = RegisterFile(path, RUNS_SCHEMA)

    def begin(self, run: NewRun) -> RunRecord:
        """Register a run, or return the existing one with this id."""
        now = time.time()
        with self._file.connection() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, 'running', '', ?, ?, NULL)",
                (
                    run.thread_id,
                    run.fingerprint,
                    run.section,
                    run.title,
                    dump_json(run.request),
                    run.library_version,
                    run.fresh,
                    now,
                    now,
                ),
            )
        return self.get(run.thread_id)

    def mark(
        self, thread_id: str, status: RunStatus, *, detail: str = "", result: dict[str, Any] | None = None
    ) -> None:
        """Update the status of a run; None leaves the result unchanged."""
        with self._file.connection() as connection:
            connection.execute(
                "UPDATE runs SET status = ?, detail = ?, updated_at = ?, result = coalesce(?, result) "
                "WHERE thread_id = ?",
                (status, detail, time.time(), None if result is None else dump_json(result), thread_id),
            )

    def get(self, thread_id: str) -> RunRecord:
        """The run with this id or unique id prefix; raises `UnknownRunError`."""
        with self._file.connection() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM runs WHERE thread_id = ? OR substr(thread_id, 1, ?) = ? "
                "ORDER BY thread_id = ? DESC LIMIT 2",
                (thread_id, len(thread_id), thread_id, thread_id),
            )
            runs = _runs(rows)
        if not runs or not thread_id:
            raise UnknownRunError(f"There is no run {thread_id!r}.")
        if len(runs) == 2 and runs[0].thread_id != thread_id:
            raise UnknownRunError(f"More than one run begins with {thread_id!r}.")
        return runs[0]

    def latest(self, fingerprint: str) -> RunRecord | None:
        """The most recently started run with this fingerprint."""
        with self._file.connection() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM runs WHERE fingerprint = ? ORDER BY rowid DESC LIMIT 1",
                (fingerprint,),
            )
            return next(iter(_runs(rows)), None)

    def latest_about(self, question: str) -> RunRecord | None:
        """The most recently started run of a question, whatever its library and settings."""
        with self._file.connection() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM runs WHERE CASE WHEN json_valid(request) THEN"
                " json_extract(request, '$.question') = ? END ORDER BY rowid DESC LIMIT 1",
                (question,),
            )
            return next(iter(_runs(rows)), None)

    def heads(self, limit: int | None = None, offset: int = 0) -> list[RunHead]:
        """The runs without their requests and results, most recent first; all of them without a limit."""
        with self._file.connection() as connection:
            rows = connection.execute(
                f"SELECT {_HEAD} FROM runs ORDER BY updated_at DESC LIMIT ? OFFSET ?",
                (-1 if limit is None else limit, offset),
            )
            return [RunHead(**row) for row in RUNS.records(rows)]

    def count(self) -> int:
        """The number of runs."""
        with self._file.connection() as connection:
            return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])

    def all(self) -> list[RunRecord]:
        """All runs, most recent first."""
        with self._file.connection() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM runs ORDER BY updated_at DESC")
            return _runs(rows)

    def citing(self, key: str) -> list[CitingRun]:
        """The finished runs whose text cites a paper, most recent first."""
        with self._file.connection() as connection:
            rows = connection.execute(
                "SELECT thread_id, section, title, updated_at FROM runs"
                f" WHERE {cites('result')} ORDER BY updated_at DESC",
                (key,),
            )
            return [CitingRun(*row) for row in RUNS.read(rows)]

    def plot_sets(self) -> set[str]:
        """The sets of uploaded plots that runs name, from the index of the runs that have any."""
        with self._file.connection() as connection:
            rows = connection.execute("SELECT request FROM runs WHERE instr(request, 'plots-') > 0")
            return {name for (request,) in rows for name in PLOT_SET.findall(str(request))}

    def delete(self, thread_id: str) -> None:
        """Delete a run; its checkpoints are left to the caller."""
        with self._file.connection() as connection:
            connection.execute("DELETE FROM runs WHERE thread_id = ?", (thread_id,))


def _runs(cursor: sqlite3.Cursor) -> list[RunRecord]:
    return [RunRecord(**row) for row in RUNS.records(cursor)]
