"""The sentences that a user rewrote in finished runs; the stored texts of the runs never change."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

from ...sqlite import RegisterFile
from ..run_records import EditedSentence

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS edits (
    thread_id TEXT NOT NULL, position INTEGER NOT NULL, text TEXT NOT NULL, checked TEXT NOT NULL,
    updated_at REAL NOT NULL, PRIMARY KEY (thread_id, position)
) WITHOUT ROWID;
"""


class EditedSentences:
    """Edited sentences in the run registry at `path`; blocking and thread-safe."""

    def __init__(self, path: Path) -> None:
        self._file = RegisterFile(path, _SCHEMA)

    def of(self, thread_id: str) -> list[EditedSentence]:
        """The edited sentences of a run, in the order of the text."""
        with self._file.connection() as connection:
            rows = connection.execute(
                "SELECT * FROM edits WHERE thread_id = ? ORDER BY position", (thread_id,)
            ).fetchall()
        return [
            EditedSentence(row["position"], row["text"], self._file.parsed(row, "checked"), row["updated_at"])
            for row in rows
        ]

    def keep(self, thread_id: str, edit: EditedSentence) -> None:
        """Store an edited sentence in place of an earlier one at its position."""
        with self._file.connection() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO edits VALUES (?, ?, ?, ?, ?)",
                (thread_id, edit.position, edit.text, json.dumps(edit.checked), time.time()),
            )

    def withdraw(self, thread_id: str, position: int) -> bool:
        """Return to the sentence of the run; false if it was not edited."""
        with self._file.connection() as connection:
            gone = connection.execute("DELETE FROM edits WHERE thread_id = ? AND position = ?", (thread_id, position))
        return gone.rowcount > 0

    def forget(self, thread_id: str) -> None:
        """Delete all edits of a run."""
        with self._file.connection() as connection:
            connection.execute("DELETE FROM edits WHERE thread_id = ?", (thread_id,))
