"""The tables of a register in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .database import Database


class SharedSql:
    """A connection that takes the parameters of statements as `?`, as SQLite does."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """Execute a statement; returns its cursor."""
        return self._connection.execute(sql.replace("?", "%s"), parameters)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        """Execute a statement for each row."""
        cursor = self._connection.cursor()
        cursor.executemany(sql.replace("?", "%s"), rows)
        return cursor


class DatabaseTables:
    """Tables that the migrations made; `pool` has connections that are open, without it each call opens one."""

    def __init__(self, database: Database, pool: Any = None) -> None:
        self._database = database
        self._pool = pool

    def exist(self) -> bool:
        """True: they were made with the library."""
        return True

    @contextmanager
    def transaction(self) -> Iterator[SharedSql]:
        """A connection for one transaction."""
        if self._pool is None:
            with self._database.transaction() as connection:
                yield SharedSql(connection)
        else:
            with (
                self._database.named_errors(),
                self._pool.connection() as connection,
                connection.transaction(),
            ):
                yield SharedSql(connection)
