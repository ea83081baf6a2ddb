"""What was deleted or withdrawn a moment ago: a request that was under way at that time was valid when it was sent."""

from __future__ import annotations

import hashlib
import time
from typing import Final

from .register_tables import RegisterTables, rows_of

ENDINGS_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS endings (
    name TEXT PRIMARY KEY, connection TEXT NOT NULL, ended_at REAL NOT NULL
) WITHOUT ROWID;
"""
_MOMENT: Final = 2.0  # seconds


class RecentEndings:
    """Names of what ended, with the connection of the request that did it; blocking and thread-safe."""

    def __init__(self, tables: RegisterTables) -> None:
        self._tables = tables

    def add(self, name: str, connection: str) -> None:
        """Store that a request of this connection ended something."""
        now = time.time()
        with self._tables.transaction() as db:
            db.execute("DELETE FROM endings WHERE ended_at < ? OR name = ?", (now - _MOMENT, _hash(name)))
            db.execute("INSERT INTO endings VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (_hash(name), connection, now))

    def by_another(self, name: str, connection: str) -> bool:
        """Whether another connection ended it; a request on the same one was sent after the answer."""
        query = "SELECT 1 AS found FROM endings WHERE name = ? AND connection <> ? AND ended_at >= ?"
        return bool(rows_of(self._tables, query, (_hash(name), connection, time.time() - _MOMENT)))


def _hash(name: str) -> str:
    """A name may hold anything that a request names."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
