"""The tables of a home besides its library, declared so that they can be copied between homes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..table_columns import BLOB, TEXT, TypedTable, integer
from .evidence_table_register import EVIDENCE_TABLES, TABLE_CELLS, TABLE_PAPERS
from .metadata_store import METADATA_REMEDY, METADATA_TABLES
from .run_register import CITED_PAPERS, CONVERSATIONS, EDITS, LABELS, OWNED, RUNS, TURNS, UPDATES, WRITTEN
from .tables import FileTables

GRID_TABLES: Final = (EVIDENCE_TABLES, TABLE_PAPERS, TABLE_CELLS)
RUN_TABLES: Final = (RUNS, CITED_PAPERS, EDITS, UPDATES, CONVERSATIONS, LABELS, TURNS, WRITTEN, OWNED, *GRID_TABLES)
_PLACE: Final = tuple("thread_id checkpoint_ns checkpoint_id task_id".split())
CHECKPOINT_WRITES: Final = TypedTable(
    "checkpoint_writes",
    (*_PLACE, "idx"),
    dict.fromkeys((*_PLACE, "task_path"), TEXT) | {"idx": integer(-100), "channel": TEXT, "type": TEXT, "blob": BLOB},
)


def run_tables(path: Path) -> FileTables:
    """The registers of runs, conversations and written files in the file at `path`."""
    return FileTables(path, RUN_TABLES)


def metadata_tables(path: Path) -> FileTables:
    """The tables of metadata from services, in the file at `path`."""
    return FileTables(path, METADATA_TABLES, METADATA_REMEDY)
