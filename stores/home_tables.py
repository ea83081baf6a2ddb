"""The tables of a home besides its library, declared so that they can be copied between backends."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, Protocol

from ..table_columns import BLOB, TEXT, TypedTable, integer
from .conversation_register import CONVERSATIONS, TURNS
from .evidence_table_register import EVIDENCE_TABLES, TABLE_CELLS, TABLE_PAPERS
from .run_register import CITED_PAPERS, EDITS, OWNED, RUNS, UPDATES, WRITTEN

GRID_TABLES: Final = (EVIDENCE_TABLES, TABLE_PAPERS, TABLE_CELLS)
RUN_TABLES: Final = (RUNS, CITED_PAPERS, EDITS, UPDATES, CONVERSATIONS, TURNS, WRITTEN, OWNED, *GRID_TABLES)


class HomeRecords(Protocol):
    """Reads and writes the rows of these tables; blocking."""

    def rows(self, table: TypedTable) -> Generator[tuple[Any, ...]]:
        """All rows of a table, runs in the order in which they began."""

    def put(self, table: TypedTable, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, or replace those with the same keys, in one transaction."""


_PLACE: Final = tuple("thread_id checkpoint_ns checkpoint_id task_id".split())
CHECKPOINT_WRITES: Final = TypedTable(
    "checkpoint_writes",
    (*_PLACE, "idx"),
    dict.fromkeys((*_PLACE, "task_path"), TEXT) | {"idx": integer(-100), "channel": TEXT, "type": TEXT, "blob": BLOB},
)
