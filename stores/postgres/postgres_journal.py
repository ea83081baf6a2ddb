"""The journal in PostgreSQL: the same transactions as in a file, by the same code, one at a time per library."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ...models.journal.journal_database import JournalConnection
from ...settings.addresses import DatabaseUrl
from .advisory_locks import DatabaseCallLocks
from .database import ConnectionLostError, Database, DatabaseError, LeaseLostError

_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ':journal', 0))"
_TABLES: Final = "unnest('{answers,uses,spending,beginnings,contexts}'::regclass[]) AS name"
_RECONNECTING: Final = 20.0  # seconds; enough for a restarted server to come back
_PAUSE: Final = 0.2


class LibraryJournalConnection:
    """A connection that reopens itself when lost, and finds out whether a commit succeeded."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection = database.connect(autocommit=True)
        self._changed = False  # whether the open transaction has written anything

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        if self._connection.closed:
            self._connection = self._reconnect()
        self._changed = not sql.startswith("BEGIN") and (self._changed or not sql.startswith("SELECT"))
        with self._database.named_errors():
            return self._connection.execute(sql.replace("?", "%s"), parameters or None)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        self._changed = True
        with self._database.named_errors():
            cursor = self._connection.cursor()
            cursor.executemany(sql.replace("?", "%s"), rows)
        return cursor

    def commit(self) -> None:
        """Commit. If the connection is lost meanwhile, the server is asked whether the transaction was committed."""
        transaction = None
        if self._changed:
            (transaction,) = self.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone()
        try:
            self.execute("COMMIT")
        except ConnectionLostError:
            self._connection.close()
            until, status = time.monotonic() + _RECONNECTING, "in progress" if transaction else "unknown"
            while status == "in progress" and time.monotonic() < until:
                (status,) = self.execute("SELECT pg_xact_status(?::xid8)", (transaction,)).fetchone()
                if status == "in progress":
                    time.sleep(_PAUSE)
            if status != "committed":
                raise

    def rollback(self) -> None:
        """Roll back; the server already did so for a lost connection."""
        if not self._connection.closed:
            try:
                self.execute("ROLLBACK")
            except (ConnectionLostError, DatabaseError):
                self._connection.close()

    def close(self) -> None:
        self._connection.close()

    def _reconnect(self) -> Any:
        until = time.monotonic() + _RECONNECTING
        while True:
            try:
                return self._database.connect(autocommit=True)
            except LeaseLostError:
                raise
            except ConnectionLostError:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)


class LibraryJournalDatabase:
    """The journal's tables in the database at `url`."""

    begin = f"BEGIN; {_LOCK}"
    errors: tuple[type[Exception], ...] = (ConnectionLostError, DatabaseError)
    passing: tuple[type[Exception], ...] = (ConnectionLostError,)

    def __init__(self, url: DatabaseUrl) -> None:
        self.place = url
        self.name = str(url)

    def connect(self) -> LibraryJournalConnection:
        return LibraryJournalConnection(Database(self.place))

    def call_locks(self) -> DatabaseCallLocks:
        return DatabaseCallLocks(self.place)

    def stored_bytes(self, connection: JournalConnection) -> int:
        (size,) = connection.execute(f"SELECT sum(pg_total_relation_size(name)) FROM {_TABLES}").fetchone()
        return int(size)

    def reclaim(self, connection: JournalConnection) -> None:
        """Let the server reuse the space; only space at the end of a table is returned to the disk."""
        connection.execute("VACUUM answers, uses")

    def remedy(self, error: Exception) -> str:
        return str(getattr(error, "help", "")) or ConnectionLostError.default_help
