"""A SQLite file that registers keep their rows in: a connection for each call, so that any thread may ask."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from citeloom.models.write_ahead import write_ahead


class RegisterFile:
    """The file at `path` with the tables of `schema`, made where they are not there; blocks."""

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        with self.connection() as connection:
            connection.executescript(schema)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are on disk when the block ends without an error, and undone otherwise."""
        connection = sqlite3.connect(self._path, timeout=30)
        connection.row_factory = sqlite3.Row
        try:
            write_ahead(connection)
            connection.execute("PRAGMA synchronous=FULL")
            with connection:
                yield connection
        finally:
            connection.close()
