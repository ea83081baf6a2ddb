"""The journal in PostgreSQL: the same transactions as in a file, by the same code, one at a time per library."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from ...models.journal.journal_database import JournalConnection
from ...settings.addresses import DatabaseUrl
from .advisory_locks import DatabaseCallLocks
from .database import ConnectionLostError, Database, DatabaseError, LeaseLostError

if TYPE_CHECKING:
    from psycopg import Pipeline

_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ':journal', 0))"
_TABLES: Final = "unnest('{answers,uses,spending,beginnings,contexts}'::regclass[]) AS name"
_RECONNECTING: Final = 20.0  # seconds; enough for a restarted server to come back
_PAUSE: Final = 0.2


class LibraryJournalConnection:
    """A connection that reopens itself when lost, and finds out whether a commit succeeded.

    The statements of a transaction are pipelined: only statements that return rows, and the commit, wait for the
    server. An error of any other statement is raised by the next one that waits.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection = database.connect(autocommit=True)
        self._transaction = ExitStack()  # which leaves the pipeline
        self._pipeline: Pipeline | None = None
        self._written: Any = None  # the cursor that holds the open transaction's id; None until it writes

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        if self._connection.closed:
            self._connection = self._reconnect()
        with self._database.translate_errors():
            if sql == LibraryJournalDatabase.begin:
                self._leave()
                self._pipeline = self._transaction.enter_context(self._connection.pipeline())
                self._connection.execute(sql)
                return self._connection.execute(_LOCK)
            cursor = self._connection.execute(sql.replace("?", "%s"), parameters or None)
            reads = sql.startswith("SELECT")
            if not reads:
                self._note_write()
            if self._pipeline is not None and (reads or "RETURNING" in sql):
                self._pipeline.sync()
        return cursor

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        with self._database.translate_errors():
            cursor = self._connection.cursor()
            cursor.executemany(sql.replace("?", "%s"), rows)
            self._note_write()
        return cursor

    def commit(self) -> None:
        """Commit; if the connection is lost meanwhile, ask the server whether the transaction was committed."""
        transaction = None
        if self._written is not None:
            with self._database.translate_errors():
                (transaction,) = self._written.fetchone()
        try:
            with self._database.translate_errors():
                self._connection.execute("COMMIT")
                self._transaction.close()
                self._pipeline = self._written = None
        except ConnectionLostError:
            self._leave()
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
        self._leave()
        if not self._connection.closed:
            try:
                self.execute("ROLLBACK")
            except (ConnectionLostError, DatabaseError):
                self._connection.close()

    def _note_write(self) -> None:
        """Ask for the transaction's id with the first statement that writes."""
        if self._pipeline is not None and self._written is None:
            self._written = self._connection.execute("SELECT pg_current_xact_id_if_assigned()::text")

    def _leave(self) -> None:
        with suppress(ConnectionLostError, DatabaseError), self._database.translate_errors():
            self._transaction.close()
        self._pipeline = self._written = None

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

    begin = "BEGIN"  # followed by the lock in the same pipeline
    errors: tuple[type[Exception], ...] = (ConnectionLostError, DatabaseError)
    passing: tuple[type[Exception], ...] = (ConnectionLostError,)

    def __init__(self, url: DatabaseUrl) -> None:
        self._url = url
        self.place: Hashable = url
        self.name = str(url)

    def connect(self) -> LibraryJournalConnection:
        return LibraryJournalConnection(Database(self._url))

    def call_locks(self) -> DatabaseCallLocks:
        return DatabaseCallLocks(self._url)

    def stored_bytes(self, connection: JournalConnection) -> int:
        (size,) = connection.execute(f"SELECT sum(pg_total_relation_size(name)) FROM {_TABLES}").fetchone()
        return int(size)

    def reclaim(self, connection: JournalConnection) -> None:
        """Let the server reuse the space; only space at the end of a table is returned to the disk."""
        connection.execute("VACUUM answers, uses")

    def remedy(self, error: Exception) -> str:
        return str(getattr(error, "help", "")) or ConnectionLostError.default_help
