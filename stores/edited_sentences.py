"""The sentences that a user rewrote in finished runs; the stored texts of the runs never change."""

from __future__ import annotations

import time
from typing import Final

from ..table_columns import MOMENT, OBJECT, TEXT, TypedTable, dump_json, integer
from .register_tables import RegisterTables, rows_of
from .run_records import EditedSentence

EDITS_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS edits (
    thread_id TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL, checked TEXT NOT NULL,
    updated_at REAL NOT NULL, PRIMARY KEY (thread_id, position)
) WITHOUT ROWID;
"""


_EDITS: Final = TypedTable(
    "edits",
    ("thread_id", "position"),
    {"thread_id": TEXT, "position": integer(), "text": TEXT, "checked": OBJECT, "updated_at": MOMENT},
)


class EditedSentences:
    """Edited sentences beside the register of runs; blocking and thread-safe."""

    def __init__(self, tables: RegisterTables) -> None:
        self._tables = tables

    def of(self, thread_id: str) -> list[EditedSentence]:
        """The edited sentences of a run, in the order of the text."""
        query = "SELECT thread_id, position, text, checked, updated_at FROM edits WHERE thread_id = ? ORDER BY position"
        rows = rows_of(self._tables, _EDITS, query, (thread_id,))
        return [EditedSentence(row["position"], row["text"], row["checked"], row["updated_at"]) for row in rows]

    def keep(self, thread_id: str, edit: EditedSentence) -> None:
        """Store an edited sentence in place of an earlier one at its position."""
        with self._tables.transaction() as connection:
            connection.execute(
                "INSERT INTO edits VALUES (?, ?, ?, ?, ?) ON CONFLICT (thread_id, position) DO UPDATE SET"
                " text = excluded.text, checked = excluded.checked, updated_at = excluded.updated_at",
                (thread_id, edit.position, edit.text, dump_json(edit.checked), time.time()),
            )

    def withdraw(self, thread_id: str, position: int) -> bool:
        """Return to the sentence of the run; false if it was not edited."""
        with self._tables.transaction() as connection:
            gone = connection.execute("DELETE FROM edits WHERE thread_id = ? AND position = ?", (thread_id, position))
            return bool(gone.rowcount > 0)

    def forget(self, thread_id: str) -> None:
        """Delete all edits of a run."""
        with self._tables.transaction() as connection:
            connection.execute("DELETE FROM edits WHERE thread_id = ?", (thread_id,))
