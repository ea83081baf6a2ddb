"""Lets registers run on SQLite and PostgreSQL alike, using the SQL that both understand.

A register declares its tables as `TypedTable`, from which both databases create them, and uses `Tables`, which covers
the few differences between them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from ..table_columns import TypedTable

TABLES_VERSION: Final = 2  # of a home's tables; a change of it needs a migration
_LONGEST: Final = 200  # characters of a key; PostgreSQL indexes at most some 2,700 bytes
ALL_ROWS: Final = 2**62  # a limit that both databases accept


class TableConnection(Protocol):
    """A connection within a transaction; parameters are written as `?`."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any:
        """Execute a statement; returns its cursor."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Execute a statement for each row."""


class Tables(Protocol):
    """The tables of a register; blocking and thread-safe."""

    @property
    def now(self) -> str:
        """SQL for the database's time in seconds."""

    @property
    def skip_locked(self) -> str:
        """SQL suffix that locks a query's rows for update, skipping rows locked by others."""

    def exist(self) -> bool:
        """Whether anything can be stored in them; false before the first write to a file."""

    def transaction(self) -> AbstractContextManager[TableConnection]:
        """A connection whose changes are committed at the end of the block, or rolled back on an error.

        Raises `DamagedFileError` if the file is unreadable, `ConnectionLostError` if the server is gone.
        """


def read_rows(tables: Tables, table: TypedTable, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """The decoded rows of a query by column; none while the tables do not exist."""
    if not tables.exist():
        return []
    with tables.transaction() as connection:
        return table.records(connection.execute(sql, parameters))


def index_key(text: str) -> str:
    """The text as indexed; long texts are cut and end in a hash."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 64]}{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
