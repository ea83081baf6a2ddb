"""The registry of conversations, with the full record of each answer.

The state that the next turn needs is in the checkpoints. Answers are stored here, once per turn, so that checkpoints
stay small and exports do not depend on them.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any, Final

from ...sqlite import RegisterFile, cites
from ...table_columns import dump_json
from ..run_records import CONVERSATIONS, TURNS, CitingTurn, ConversationEntry, KeptTurn, UnknownConversationError

CONVERSATIONS_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS conversations (
    thread_id TEXT PRIMARY KEY, begun_at REAL NOT NULL, updated_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS turns (
    thread_id TEXT NOT NULL, number INTEGER NOT NULL, asked TEXT NOT NULL, question TEXT NOT NULL,
    answered INTEGER NOT NULL, answered_at REAL NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (thread_id, number)
) WITHOUT ROWID;
"""
_LISTED = """
SELECT thread_id, begun_at, updated_at, count(number) AS turns,
       coalesce((SELECT asked FROM turns AS first WHERE first.thread_id = conversations.thread_id
                 ORDER BY number LIMIT 1), '') AS title
FROM conversations LEFT JOIN turns USING (thread_id)
"""
_COLUMNS = "thread_id, number, asked, question, answered, answered_at, record"


class ConversationRegister:
    """Conversations in a SQLite file; blocking and thread-safe."""

    def __init__(self, path: Path) -> None:
        self._file = RegisterFile(path, CONVERSATIONS_SCHEMA)

    def begin(self, thread_id: str) -> None:
        """Register a conversation; does nothing if it exists."""
        now = time.time()
        with self._file.connection() as connection:
            connection.execute("INSERT OR IGNORE INTO conversations VALUES (?, ?, ?)", (thread_id, now, now))

    def keep(self, thread_id: str, number: int, asked: str, question: str, record: dict[str, Any]) -> None:
        """Store a finished turn; idempotent."""
        now = time.time()
        with self._file.connection() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)",
                (thread_id, number, asked, question, bool(record["citations"]), now, dump_json(record)),
            )
            connection.execute("UPDATE conversations SET updated_at = ? WHERE thread_id = ?", (now, thread_id))

    def get(self, thread_id: str) -> ConversationEntry:
        """The conversation with this id or unique id prefix; raises `UnknownConversationError`."""
        with self._file.connection() as connection:
            rows = connection.execute(
                f"{_LISTED} WHERE substr(thread_id, 1, ?) = ? GROUP BY thread_id ORDER BY thread_id = ? DESC LIMIT 2",
                (len(thread_id), thread_id, thread_id),
            )
            found = _entries(rows)
        if not found or not thread_id:
            raise UnknownConversationError(f"There is no conversation {thread_id!r}.")
        if len(found) == 2 and found[0].thread_id != thread_id:
            raise UnknownConversationError(f"More than one conversation begins with {thread_id!r}.")
        return found[0]

    def all(self) -> list[ConversationEntry]:
        """All conversations, most recent first."""
        with self._file.connection() as connection:
            return _entries(connection.execute(f"{_LISTED} GROUP BY thread_id ORDER BY updated_at DESC"))

    def turns(self, thread_id: str) -> list[KeptTurn]:
        """The finished turns of a conversation, in order."""
        with self._file.connection() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM turns WHERE thread_id = ? ORDER BY number", (thread_id,))
            return _turns(rows)

    def last_turn(self, thread_id: str, *, answered: bool = False) -> KeptTurn | None:
        """The latest finished turn, or the latest that was `answered`."""
        only = " AND answered" if answered else ""
        with self._file.connection() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM turns WHERE thread_id = ?{only} ORDER BY number DESC LIMIT 1", (thread_id,)
            )
            return next(iter(_turns(rows)), None)

    def citing(self, key: str) -> list[CitingTurn]:
        """The turns whose answers cite a paper, most recent first."""
        with self._file.connection() as connection:
            rows = connection.execute(
                "SELECT thread_id, number, asked, answered_at FROM turns"
                f" WHERE {cites('record')} ORDER BY answered_at DESC",
                (key,),
            )
            return [CitingTurn(*row) for row in TURNS.read(rows)]

    def delete(self, thread_id: str) -> None:
        """Delete a conversation; its checkpoints are left to the caller."""
        with self._file.connection() as connection:
            connection.execute("DELETE FROM turns WHERE thread_id = ?", (thread_id,))
            connection.execute("DELETE FROM conversations WHERE thread_id = ?", (thread_id,))


def _turns(cursor: sqlite3.Cursor) -> list[KeptTurn]:
    return [KeptTurn(*row) for _, *row in TURNS.read(cursor)]


def _entries(cursor: sqlite3.Cursor) -> list[ConversationEntry]:
    return [ConversationEntry(**row) for row in CONVERSATIONS.records(cursor)]
