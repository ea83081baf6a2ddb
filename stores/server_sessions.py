"""Browser state kept by servers: sign-in sessions, for a month, and what has just been deleted or revoked."""

from __future__ import annotations

import hashlib
import time
from typing import Final

from ..table_columns import MOMENT, TEXT, TypedTable
from .tables import Tables, read_rows

SESSIONS_REMEDY: Final = "Move it away: browsers sign in again, and unfinished jobs are resumed by asking again."
SESSIONS: Final = TypedTable("sessions", ("id",), {"id": TEXT, "token": TEXT, "expires_at": MOMENT})
ENDINGS: Final = TypedTable("endings", ("name",), {"name": TEXT, "connection": TEXT, "ended_at": MOMENT})
MAX_AGE: Final = 30 * 86_400  # seconds
_MAX_SESSIONS: Final = 1000
_RECENT: Final = 2.0  # seconds


class SignInSessions:
    """Sessions by the hash of their id, so that a copy of the home signs nobody in; blocking and thread-safe.

    `token` is a fingerprint of the server's token: a session is valid only for the token that began it.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def begin(self, session: str, token: str) -> None:
        """Store a session; it replaces expired ones, and the oldest where there are too many."""
        now = time.time()
        with self._tables.transaction() as connection:
            connection.execute(SESSIONS.insert(), (_hash(session), token, now + MAX_AGE))
            connection.execute("DELETE FROM sessions WHERE expires_at <= ?", (now,))
            connection.execute(
                "DELETE FROM sessions WHERE id NOT IN (SELECT id FROM sessions ORDER BY expires_at DESC LIMIT ?)",
                (_MAX_SESSIONS,),
            )

    def is_active(self, session: str, token: str) -> bool:
        """Whether a session was begun with this token and has neither ended nor expired."""
        query = "SELECT * FROM sessions WHERE id = ? AND token = ? AND expires_at > ?"
        return bool(read_rows(self._tables, SESSIONS, query, (_hash(session), token, time.time())))

    def end(self, session: str) -> None:
        """End a session; does nothing if there is none."""
        with self._tables.transaction() as connection:
            connection.execute("DELETE FROM sessions WHERE id = ?", (_hash(session),))

    def end_all(self, but_of: str = "") -> None:
        """End all sessions, except those of a token if one is given."""
        if self._tables.exist():
            with self._tables.transaction() as connection:
                connection.execute("DELETE FROM sessions WHERE token <> ?", (but_of,))


class RecentEndings:
    """What was just deleted or revoked: requests in flight at that moment were valid when they were sent.

    Stores names, with the connection of the request that ended them; blocking and thread-safe.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def add(self, name: str, connection: str) -> None:
        """Store that a request of this connection ended something."""
        now = time.time()
        with self._tables.transaction() as db:
            db.execute("DELETE FROM endings WHERE ended_at < ? OR name = ?", (now - _RECENT, _hash(name)))
            db.execute(ENDINGS.insert("ignore"), (_hash(name), connection, now))

    def by_another(self, name: str, connection: str) -> bool:
        """Whether another connection ended it; a request on the same connection was sent after the answer."""
        query = "SELECT * FROM endings WHERE name = ? AND connection <> ? AND ended_at >= ?"
        return bool(read_rows(self._tables, ENDINGS, query, (_hash(name), connection, time.time() - _RECENT)))


def _hash(name: str) -> str:
    """Hash a name, since it may contain anything that a request names."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
