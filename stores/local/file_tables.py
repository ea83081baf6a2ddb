"""The tables of registers in SQLite files, created from their declarations."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from ...errors import OtherFormatError
from ...sqlite import (
    REGISTER_REMEDY,
    TextConnection,
    naming_damage,
    require_plain_schema,
    write_ahead,
)
from ...table_columns import SQLITE, TypedTable
from ..tables import TABLES_VERSION


class FileTables:
    """Tables in the file at `path`, created with the first entry; opens a connection per transaction.

    `remedy` says what to do when the file is damaged.
    """

    now: Final = "(julianday('now') - 2440587.5) * 86400.0"
    skip_locked: Final = ""

    def __init__(self, path: Path, tables: Sequence[TypedTable], remedy: str = REGISTER_REMEDY) -> None:
        self._path = path
        self._tables = tables
        self._remedy = remedy
        self._opening = threading.Lock()
        self._made = not tables

    def exist(self) -> bool:
        return self._path.exists()  # a folder in its place is damage, not absence

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with (
            naming_damage(self._path, self._remedy),
            closing(sqlite3.connect(self._path, timeout=30, factory=TextConnection)) as connection,
        ):
            write_ahead(connection)
            connection.execute("PRAGMA synchronous=FULL")
            require_plain_schema(connection, self._path, self._remedy)
            with self._opening:
                if not self._made:
                    version = connection.execute("PRAGMA user_version").fetchone()[0]
                    if version > TABLES_VERSION:
                        raise OtherFormatError(self._path, version, TABLES_VERSION)
                    statements = "".join(table.create(SQLITE) for table in self._tables)
                    connection.executescript(f"{statements}PRAGMA user_version = {TABLES_VERSION};")
                    self._made = True
            with connection:
                yield connection


def run_tables(path: Path) -> FileTables:
    """The registers of runs, conversations and written files in the file at `path`."""
    from ..home_tables import RUN_TABLES

    return FileTables(path, RUN_TABLES)


def metadata_tables(path: Path) -> FileTables:
    """The tables of metadata from services, in the file at `path`."""
    from ..metadata_store import METADATA_REMEDY, METADATA_TABLES

    return FileTables(path, METADATA_TABLES, METADATA_REMEDY)
