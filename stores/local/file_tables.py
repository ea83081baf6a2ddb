"""The tables of registers in SQLite files, created from their declarations."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ...errors import OtherFormatError
from ...models.journal.journal_database import JOURNAL_TABLES, connect
from ...sqlite import (
    CHECKPOINTS_REMEDY,
    REGISTER_REMEDY,
    TextConnection,
    naming_damage,
    require_plain_schema,
    write_ahead,
)
from ...table_columns import SQLITE, TypedTable
from ..home_tables import CHECKPOINT_WRITES, RUN_TABLES, select_all
from ..metadata_store import METADATA_REMEDY, METADATA_TABLES
from ..tables import TABLES_VERSION
from .folder_home import FolderHome


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
                    self._make(connection)
                    self._made = True
            with connection:
                yield connection

    def _make(self, connection: sqlite3.Connection) -> None:
        """Create the tables that are missing; raises `OtherFormatError` if they cannot be read."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > TABLES_VERSION:
            raise OtherFormatError(self._path, version, TABLES_VERSION)
        statements = "".join(table.create(SQLITE) for table in self._tables)
        connection.executescript(f"{statements}PRAGMA user_version = {TABLES_VERSION};")


def run_tables(path: Path) -> FileTables:
    """The registers of runs, conversations and written files in the file at `path`."""
    return FileTables(path, RUN_TABLES)


def metadata_tables(path: Path) -> FileTables:
    """The tables of metadata from services, in the file at `path`."""
    return FileTables(path, METADATA_TABLES, METADATA_REMEDY)


class FileRecords:
    """The rows of the tables in the SQLite files of a folder; a missing file is created when rows are put into it."""

    def __init__(self, home: FolderHome) -> None:
        self._journal_path = home.journal
        journal, checkpoints = FileTables(home.journal, ()), FileTables(home.checkpoints, (), CHECKPOINTS_REMEDY)
        self._files = (
            dict.fromkeys((table.name for table in JOURNAL_TABLES), journal)
            | dict.fromkeys((table.name for table in RUN_TABLES), run_tables(home.runs))
            | dict.fromkeys((table.name for table in METADATA_TABLES), metadata_tables(home.metadata))
            | {CHECKPOINT_WRITES.name: checkpoints}
        )

    def rows(self, table: TypedTable) -> Generator[tuple[Any, ...]]:
        file = self._files[table.name]
        if file.exist():
            with file.transaction() as connection:
                yield from map(tuple, connection.execute(select_all(_in_file(table))))

    def put(self, table: TypedTable, rows: Sequence[tuple[Any, ...]]) -> None:
        if table.name in {each.name for each in JOURNAL_TABLES}:
            connect(self._journal_path).close()  # which creates the tables
        with self._files[table.name].transaction() as connection:
            connection.executemany(_in_file(table).insert("update"), rows)


def _in_file(table: TypedTable) -> TypedTable:
    """The table with the names that LangGraph uses in SQLite files."""
    if table is not CHECKPOINT_WRITES:
        return table
    columns = {"value" if name == "blob" else name: column for name, column in table.columns.items()}
    return replace(table, name="writes", columns=columns)
