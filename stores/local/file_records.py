"""The rows of the tables in the SQLite files of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from ...models.journal.journal_database import connect
from ...sqlite import CHECKPOINTS_REMEDY, REGISTER_REMEDY
from ..edited_sentences import EDITS_SCHEMA
from ..home import Home
from ..home_tables import HomeTable
from ..metadata_store import METADATA_REMEDY, METADATA_SCHEMA
from .conversation_registry import CONVERSATIONS_SCHEMA
from .file_tables import FileTables
from .run_registry import RUNS_SCHEMA
from .written_files import WRITTEN_SCHEMA

_JOURNAL: Final = frozenset("answers uses spending beginnings contexts".split())
_METADATA: Final = "metadata_"
_WRITES: Final = "checkpoint_writes"


class FileRecords:
    """The tables of a home in a folder; a missing file is created when rows are put into it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        schema = f"{RUNS_SCHEMA}{EDITS_SCHEMA}{CONVERSATIONS_SCHEMA}{WRITTEN_SCHEMA}"
        self._runs = FileTables(home.runs, schema, REGISTER_REMEDY)
        self._metadata = FileTables(home.metadata, METADATA_SCHEMA, METADATA_REMEDY)
        self._journal = FileTables(home.journal, "", REGISTER_REMEDY)
        self._checkpoints = FileTables(home.checkpoints, "", CHECKPOINTS_REMEDY)

    def rows(self, table: HomeTable) -> Iterator[tuple[Any, ...]]:
        """All rows of a table, runs in the order in which they began."""
        tables = self._tables_of(table)
        if not tables.exist():
            return
        order = " ORDER BY rowid" if table.name == "runs" else ""
        with tables.transaction() as connection:
            for row in connection.execute(f"SELECT {', '.join(_columns(table))} FROM {_name(table)}{order}"):
                yield tuple(row)

    def put(self, table: HomeTable, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, or replace those with the same keys, in one transaction."""
        if table.name in _JOURNAL:
            _make_journal(self._home.journal)
        with self._tables_of(table).transaction() as connection:
            connection.executemany(table.insertion(_name(table), _columns(table)), rows)

    def _tables_of(self, table: HomeTable) -> FileTables:
        if table.name in _JOURNAL:
            return self._journal
        if table.name == _WRITES:
            return self._checkpoints
        return self._metadata if table.name.startswith(_METADATA) else self._runs


def _name(table: HomeTable) -> str:
    return "writes" if table.name == _WRITES else table.name.removeprefix(_METADATA)


def _columns(table: HomeTable) -> list[str]:
    return ["value" if column == "blob" else column for column in table.columns]


def _make_journal(path: Path) -> None:
    with closing(connect(path)):
        pass
