"""The rows of the tables of a home in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..home_tables import HomeTable
from .database import Database
from .database_tables import DatabaseTables

_AT_ONCE: Final = 500  # rows that the server sends at a time


class DatabaseRecords:
    """The tables of a home in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tables = DatabaseTables(database)

    def rows(self, table: HomeTable) -> Iterator[tuple[Any, ...]]:
        """All rows of a table, runs in the order in which they began."""
        order = " ORDER BY number" if table.name == "runs" else ""
        with self._database.transaction() as connection, connection.cursor(name="rows") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(f"SELECT {', '.join(table.columns)} FROM {table.name}{order}".encode())
            for row in cursor:
                yield tuple(int(value) if isinstance(value, bool) else value for value in row)

    def put(self, table: HomeTable, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, or replace those with the same keys, in one transaction."""
        flags = {place for place, column in enumerate(table.columns) if column in table.flags}
        overriding = "OVERRIDING SYSTEM VALUE" if table.numbered else ""
        with self._tables.transaction() as connection:
            connection.executemany(
                table.insertion(table.name, table.columns, overriding),
                [[bool(value) if place in flags else value for place, value in enumerate(row)] for row in rows],
            )
            if table.numbered:
                newest = f"(SELECT max({table.key[0]}) FROM {table.name})"
                connection.execute(f"SELECT setval(pg_get_serial_sequence('{table.name}', '{table.key[0]}'), {newest})")
