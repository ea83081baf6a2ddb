"""The jobs and idempotency keys of the one server of a folder: what the next one takes up after a kill."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ...sqlite import RegisterFile
from ...table_columns import MOMENT, OBJECT, TEXT, TypedTable, dump_json
from ..job_records import JOB_KIND, KEY_USE, EventBatch, EventPage, JobEntry, JobOrder, JobState, KeyUse

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    thread_id TEXT PRIMARY KEY, kind TEXT NOT NULL, request TEXT NOT NULL, started_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS keys (
    thread_id TEXT PRIMARY KEY, request TEXT NOT NULL, started_at REAL NOT NULL
) WITHOUT ROWID;
"""
_JOBS: Final = TypedTable(
    "jobs", ("thread_id",), {"thread_id": TEXT, "kind": JOB_KIND, "request": OBJECT, "started_at": MOMENT}
)
_KEYS: Final = TypedTable("keys", ("thread_id",), {"thread_id": TEXT, "request": KEY_USE, "started_at": MOMENT})
_DAY: Final = 86_400  # seconds that an idempotency key is remembered


class UnregisteredJobs:
    """Jobs that end with their process and are resumed by asking again; no other server knows of them."""

    shared = False

    def begin(self, order: JobOrder, epoch: str, key: str = "") -> JobEntry | None:
        """Store nothing."""
        return None

    def append(self, batches: Sequence[EventBatch]) -> None:
        """Store nothing: the events are in memory."""

    def end(self, job_id: str, state: JobState, last: EventBatch) -> None:
        """Store nothing."""

    def entry(self, job_id: str) -> JobEntry | None:
        """None: no other server has jobs."""
        return None

    def entries(self) -> list[JobEntry]:
        """None: no other server has jobs."""
        return []

    def events(self, job_id: str, epoch: str, seen: int) -> EventPage | None:
        """None: no other server has events."""
        return None

    def request_stop(self, job_id: str) -> None:
        """Do nothing: no other server has jobs."""

    def claim_orphaned(self, most: int, busy: Collection[str]) -> list[JobOrder]:
        """None."""
        return []

    def release(self, job_id: str) -> None:
        """Do nothing: nothing was taken up."""


class LocalJobs(UnregisteredJobs):
    """The unfinished jobs in a SQLite file; blocking and thread-safe."""

    def __init__(self, path: Path) -> None:
        self._file = RegisterFile(path, _SCHEMA)

    def begin(self, order: JobOrder, epoch: str, key: str = "") -> JobEntry | None:
        """Store a job until it ends, and with its key."""
        with self._file.connection() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?)",
                (order.id, order.kind, dump_json(order.request), time.time()),
            )
            if key:
                _settle(connection, key, asdict(order))
        return None

    def end(self, job_id: str, state: JobState, last: EventBatch) -> None:
        """Delete a job that finished, failed or was stopped."""
        with self._file.connection() as connection:
            connection.execute("DELETE FROM jobs WHERE thread_id = ?", (job_id,))

    def claim_orphaned(self, most: int, busy: Collection[str]) -> list[JobOrder]:
        """The jobs that an earlier server did not end, in the order of their start."""
        with self._file.connection() as connection:
            rows = _JOBS.read(connection.execute("SELECT * FROM jobs ORDER BY started_at LIMIT ?", (most,)))
        return [JobOrder(job_id, kind, request) for job_id, kind, request, _ in rows if job_id not in busy]

    def forget(self, job_id: str) -> None:
        """Delete a job, and the keys of the requests that began it."""
        with self._file.connection() as connection:
            connection.execute("DELETE FROM jobs WHERE thread_id = ?", (job_id,))
            connection.execute(
                "DELETE FROM keys WHERE json_valid(request) AND json_extract(request, '$.order.id') = ?", (job_id,)
            )

    def unfinished(self) -> set[str]:
        """The ids of the jobs that work, or that the next server resumes."""
        with self._file.connection() as connection:
            return {job_id for (job_id,) in _JOBS.read(connection.execute("SELECT thread_id FROM jobs"))}


def _settle(connection: sqlite3.Connection, key: str, order: dict[str, Any]) -> None:
    for _, known, _ in _KEYS.read(connection.execute("SELECT * FROM keys WHERE thread_id = ?", (key,))):
        use = known | {"order": order}
        connection.execute("UPDATE keys SET request = ? WHERE thread_id = ?", (dump_json(use), key))


class LocalKeys:
    """Idempotency keys in the same file; a claim that an earlier server did not settle is void."""

    def __init__(self, path: Path) -> None:
        self._file = RegisterFile(path, _SCHEMA)
        self._server = secrets.token_hex(8)

    def claim(self, key: str, request: str) -> KeyUse | None:
        """Claim a key for a request and return None; returns the use of another claim that is settled or alive."""
        now = time.time()
        row = (key, dump_json({"request": request, "server": self._server}), now)
        with self._file.connection() as connection:
            connection.execute("DELETE FROM keys WHERE started_at < ?", (now - _DAY,))
            if connection.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", row).rowcount:
                return None
            ((_, use, _),) = _KEYS.read(connection.execute("SELECT * FROM keys WHERE thread_id = ?", (key,)))
            if use.get("order") is None and use["server"] != self._server and use["request"] == request:
                connection.execute("INSERT OR REPLACE INTO keys VALUES (?, ?, ?)", row)
                return None
        return KeyUse(use["request"], use.get("order"))

    def settle(self, key: str, order: dict[str, Any]) -> None:
        """Store the order of the job that was started under a claimed key."""
        with self._file.connection() as connection:
            _settle(connection, key, order)

    def release(self, key: str) -> None:
        """Forget a claimed key whose request was refused."""
        with self._file.connection() as connection:
            connection.execute("DELETE FROM keys WHERE thread_id = ?", (key,))
