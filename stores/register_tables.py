"""What a register needs of the database that holds its tables: SQL that SQLite and PostgreSQL have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..table_columns import TypedTable


class TableConnection(Protocol):
    """A connection within a transaction; parameters are written as `?`."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any:
        """Execute a statement; returns its cursor."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Execute a statement for each row."""
        ...


class RegisterTables(Protocol):
    """The tables of a register; blocking and thread-safe."""

    def exist(self) -> bool:
        """Whether anything can be stored in them; false before the first write to a file."""
        ...

    def transaction(self) -> AbstractContextManager[TableConnection]:
        """A connection whose changes are committed at the end of the block, or rolled back on an error.

        Raises `DamagedFileError` for what cannot be read, `ConnectionLostError` for a server that is gone.
        """
        ...


def rows_of(
    tables: RegisterTables, table: TypedTable, sql: str, parameters: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """The decoded rows of a query by column; none while the tables do not exist."""
    if not tables.exist():
        return []
    with tables.transaction() as connection:
        return table.records(connection.execute(sql, parameters))
