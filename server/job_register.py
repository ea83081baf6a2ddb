"""The register of the server's jobs and idempotency keys: what a killed server takes up when it starts again."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..sqlite import RegisterFile

JobKind = Literal["run", "turn", "ingest"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    thread_id TEXT PRIMARY KEY, kind TEXT NOT NULL, request TEXT NOT NULL, started_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS keys (
    thread_id TEXT PRIMARY KEY, request TEXT NOT NULL, started_at REAL NOT NULL
) WITHOUT ROWID;
"""
_DAY = 86_400  # seconds that an idempotency key is remembered


@dataclass(frozen=True, slots=True)
class JobOrder:
    """A job that was started and has not ended; `request` is all it needs to be started again."""

    id: str
    kind: JobKind
    request: dict[str, Any]


class JobRegister:
    """Unfinished jobs and idempotency keys in a SQLite file; blocking and thread-safe."""

    def __init__(self, path: Path) -> None:
        self._file = RegisterFile(path, _SCHEMA)

    def begin(self, order: JobOrder) -> None:
        """Store a job until it ends."""
        with self._file.connection() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?)",
                (order.id, order.kind, json.dumps(order.request), time.time()),
            )

    def end(self, job_id: str) -> None:
        """Forget a job that finished, failed or was stopped."""
        with self._file.connection() as connection:
            connection.execute("DELETE FROM jobs WHERE thread_id = ?", (job_id,))

    def unfinished(self) -> list[JobOrder]:
        """The jobs that did not end, in the order of their start."""
        with self._file.connection() as connection:
            rows = connection.execute("SELECT * FROM jobs ORDER BY started_at").fetchall()
        return [JobOrder(row["thread_id"], row["kind"], self._file.parsed(row, "request")) for row in rows]

    def claim(self, key: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Store what a key was first used for; returns that of an earlier use, or None if this is the first."""
        now = time.time()
        with self._file.connection() as connection:
            connection.execute("DELETE FROM keys WHERE started_at < ?", (now - _DAY,))
            new = connection.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", (key, json.dumps(request), now))
            if new.rowcount:
                return None
            row = connection.execute("SELECT * FROM keys WHERE thread_id = ?", (key,)).fetchone()
        return self._file.parsed(row, "request")

    def settle(self, key: str, request: dict[str, Any]) -> None:
        """Complete what is stored with a key."""
        with self._file.connection() as connection:
            connection.execute("UPDATE keys SET request = ? WHERE thread_id = ?", (json.dumps(request), key))

    def release(self, key: str) -> None:
        """Forget a key whose request was refused."""
        with self._file.connection() as connection:
            connection.execute("DELETE FROM keys WHERE thread_id = ?", (key,))


class NoRegister:
    """Takes the place of the register where jobs end with their process, and are resumed by asking again."""

    def begin(self, order: JobOrder) -> None:
        """Store nothing."""

    def end(self, job_id: str) -> None:
        """Forget nothing."""
