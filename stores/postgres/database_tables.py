"""The tables of registers in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ..home_tables import HomeTable
from .database import Database

_AT_ONCE: Final = 500  # rows that the server sends at a time


class SharedSql:
    """A connection that takes the parameters of statements as `?`, as SQLite does."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        return self._connection.execute(sql.replace("?", "%s"), parameters)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        cursor = self._connection.cursor()
        cursor.executemany(sql.replace("?", "%s"), rows)
        return cursor


class DatabaseTables:
    """Tables that were made with the library; `pool` has open connections, without it each call opens one."""

    now: Final = "extract(epoch FROM clock_timestamp())::float8"
    skip_locked: Final = " FOR UPDATE SKIP LOCKED"

    def __init__(self, database: Database, pool: Any = None) -> None:
        self._database = database
        self._pool = pool

    def exist(self) -> bool:
        return True

    @contextmanager
    def transaction(self) -> Iterator[SharedSql]:
        if self._pool is None:
            with self._database.transaction() as connection:
                yield SharedSql(connection)
        else:
            with self._database.leased(self._pool) as connection, connection.transaction():
                yield SharedSql(connection)


class DatabaseRecords:
    """The rows of the tables of a home in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tables = DatabaseTables(database)

    def rows(self, table: HomeTable) -> Iterator[tuple[Any, ...]]:
        with self._database.transaction() as connection, connection.cursor(name="rows") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(table.select().encode())
            yield from cursor

    def put(self, table: HomeTable, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._tables.transaction() as connection:
            connection.executemany(table.insertion(), rows)
            if table.numbered:
                (key,) = table.key
                newest = f"(SELECT max({key}) FROM {table.name})"
                connection.execute(f"SELECT setval(pg_get_serial_sequence('{table.name}', '{key}'), {newest})")
