"""What a journal needs of the database that holds it, and the SQLite file that is one."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from .schema import connect, remedy
from .single_flight import KeyLocks


class JournalConnection(Protocol):
    """A connection with the SQL that both engines understand; parameters are written as `?`."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any:
        """Execute a statement; returns its cursor."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Execute a statement for each row."""
        ...

    def commit(self) -> None:
        """Commit; returns once the transaction is on disk."""
        ...

    def rollback(self) -> None:
        """Roll the transaction back."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class CallLocks(Protocol):
    """Keys of calls that this process has claimed, against other processes."""

    def take(self, key: str) -> bool | Awaitable[bool]:
        """Try to lock a key; returns whether it is now held. Awaited where that takes a round trip."""
        ...

    def give_back(self, key: str) -> None:
        """Release the key; never waits."""
        ...

    def close(self) -> None:
        """Release all keys."""
        ...


class JournalDatabase(Protocol):
    """The database of a journal.

    A transaction that `begin` opens excludes those of all other processes, so that a budget is checked and reserved
    in one step.
    """

    @property
    def name(self) -> str:
        """The database as messages name it, without secrets."""
        ...

    @property
    def place(self) -> Hashable:
        """Equal for all journals of a process on one database: they share their call locks."""
        ...

    @property
    def begin(self) -> str:
        """The statement that opens a transaction."""
        ...

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of the database and of the connection to it."""
        ...

    @property
    def passing(self) -> tuple[type[Exception], ...]:
        """Those after which a transaction that was rolled back is worth another try on a new connection."""
        ...

    def connect(self) -> JournalConnection:
        """Open a connection, creating missing tables; raises one of `errors`."""
        ...

    def call_locks(self) -> CallLocks:
        """The locks of calls in flight."""
        ...

    def stored_bytes(self, connection: JournalConnection) -> int:
        """The space that the journal takes."""
        ...

    def reclaim(self, connection: JournalConnection) -> None:
        """Reclaim the space of deleted answers, outside of a transaction."""
        ...

    def remedy(self, error: Exception) -> str:
        """A one-line remedy for one of `errors`."""
        ...


class JournalFile:
    """A journal in a SQLite file."""

    begin = "BEGIN IMMEDIATE"
    errors: tuple[type[Exception], ...] = (sqlite3.Error, OSError)
    passing: tuple[type[Exception], ...] = ()

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def place(self) -> Path:
        """The path, the same for every spelling of it."""
        return self.path.resolve()

    def connect(self) -> sqlite3.Connection:
        """Open the file."""
        return connect(self.path)

    def call_locks(self) -> KeyLocks:
        """Byte locks in a file next to the journal."""
        return KeyLocks.beside(self.path)

    def stored_bytes(self, connection: JournalConnection) -> int:
        """The size of the file and of its log."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.is_file())

    def reclaim(self, connection: JournalConnection) -> None:
        """Shrink the file."""
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def remedy(self, error: Exception) -> str:
        """A one-line remedy for an error of the file."""
        return remedy(error)
