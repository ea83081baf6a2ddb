"""The tables of a home besides its library, declared so that they can be copied between backends."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ..models.journal.journal_database import JOURNAL_TABLES
from ..table_columns import TypedTable
from .conversation_register import CONVERSATIONS, TURNS
from .evidence_table_register import EVIDENCE_TABLES, TABLE_CELLS, TABLE_PAPERS
from .metadata_store import METADATA_TABLES
from .run_register import CITED_PAPERS, EDITS, RUNS, WRITTEN
from .server_jobs import EVENTS, JOBS, KEYS
from .server_sessions import ENDINGS, SESSIONS

GRID_TABLES: Final = (EVIDENCE_TABLES, TABLE_PAPERS, TABLE_CELLS)
RUN_TABLES: Final = (RUNS, CITED_PAPERS, EDITS, CONVERSATIONS, TURNS, WRITTEN, *GRID_TABLES)
SERVER_TABLES: Final = (JOBS, EVENTS, KEYS, SESSIONS, ENDINGS)


@dataclass(frozen=True, slots=True)
class HomeTable:
    """A table with the columns that are copied; `numbered` is a key that counts its rows."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    numbered: bool = False
    order: str = ""

    def key_of(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """The key of a row."""
        return tuple(row[self.columns.index(column)] for column in self.key)

    def select(self) -> str:
        """The query for all rows."""
        order = f" ORDER BY {self.order}" if self.order else ""
        return f"SELECT {', '.join(self.columns)} FROM {self.name}{order}"

    def insertion(self) -> str:
        """The statement that inserts a row, or replaces the one with its key."""
        return TypedTable(self.name, self.key, {}).insert("update", self.columns)


class HomeRecords(Protocol):
    """Reads and writes the rows of these tables; blocking."""

    def rows(self, table: HomeTable) -> Generator[tuple[Any, ...]]:
        """All rows of a table, runs in the order in which they began."""

    def put(self, table: HomeTable, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, or replace those with the same keys, in one transaction."""


def _home_table(table: TypedTable) -> HomeTable:
    return HomeTable(table.name, table.stored, table.key, table.number in table.columns, table.number)


CHECKPOINT_WRITES: Final = HomeTable(
    "checkpoint_writes",
    tuple("thread_id checkpoint_ns checkpoint_id task_id task_path idx channel type blob".split()),
    tuple("thread_id checkpoint_ns checkpoint_id task_id idx".split()),
)
HOME_TABLES: Final = (*map(_home_table, (*JOURNAL_TABLES, *RUN_TABLES, *METADATA_TABLES)), CHECKPOINT_WRITES)
