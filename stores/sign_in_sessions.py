"""The sessions of browsers that gave the server's token, until they sign out or a month has passed."""

from __future__ import annotations

import hashlib
import time
from typing import Final

from .register_tables import RegisterTables, rows_of

SESSIONS_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, token TEXT NOT NULL, expires_at REAL NOT NULL
) WITHOUT ROWID;
"""
SESSIONS_REMEDY: Final = "Move it away: browsers sign in again, and unfinished jobs are resumed by asking again."
MAX_AGE: Final = 30 * 86_400  # seconds
_MAX_SESSIONS: Final = 1000


class SignInSessions:
    """Sessions by the hash of their id, so that a copy of the home signs nobody in; blocking and thread-safe.

    `token` is a fingerprint of the server's token: a session counts only for the token that began it.
    """

    def __init__(self, tables: RegisterTables) -> None:
        self._tables = tables

    def begin(self, session: str, token: str) -> None:
        """Store a session; it replaces expired ones, and the oldest where there are too many."""
        now = time.time()
        with self._tables.transaction() as connection:
            connection.execute("INSERT INTO sessions VALUES (?, ?, ?)", (_hash(session), token, now + MAX_AGE))
            connection.execute("DELETE FROM sessions WHERE expires_at <= ?", (now,))
            connection.execute(
                "DELETE FROM sessions WHERE id NOT IN (SELECT id FROM sessions ORDER BY expires_at DESC LIMIT ?)",
                (_MAX_SESSIONS,),
            )

    def is_active(self, session: str, token: str) -> bool:
        """Whether a session was begun with this token and has neither ended nor expired."""
        query = "SELECT 1 AS found FROM sessions WHERE id = ? AND token = ? AND expires_at > ?"
        return bool(rows_of(self._tables, query, (_hash(session), token, time.time())))

    def end(self, session: str) -> None:
        """End a session; does nothing if there is none."""
        with self._tables.transaction() as connection:
            connection.execute("DELETE FROM sessions WHERE id = ?", (_hash(session),))

    def end_all(self, but_of: str = "") -> None:
        """End all sessions, or all but those of a token."""
        if self._tables.exist():
            with self._tables.transaction() as connection:
                connection.execute("DELETE FROM sessions WHERE token <> ?", (but_of,))


def _hash(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()
