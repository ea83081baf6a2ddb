"""Idempotency keys of all servers of a library, in PostgreSQL."""

from __future__ import annotations

from typing import Any, Final

from ...table_columns import TEXT, TypedTable, dump_json, optional
from ..job_records import ORDER, KeyUse
from .database import Database

_CLAIM: Final = """
INSERT INTO request_keys (key, request, server) VALUES (%s, %s, %s)
ON CONFLICT (key) DO UPDATE SET server = excluded.server, claimed_at = now()
WHERE request_keys.job IS NULL AND request_keys.request = excluded.request
    AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.id = request_keys.server)
RETURNING 1
"""

_KEYS: Final = TypedTable("request_keys", ("key",), {"key": TEXT, "request": TEXT, "job": optional(ORDER)})


class PostgresKeys:
    """The keys, as one server claims them; a claim ends with its server unless it was committed."""

    def __init__(self, database: Database, pool: Any) -> None:
        self._database = database
        self._server = database.url.server
        self._pool = pool

    def claim(self, key: str, request: str) -> KeyUse | None:
        """Claim a key for a request and return None; returns the use of another claim that is committed or alive."""
        with self._database.leased(self._pool) as connection:
            if connection.execute(_CLAIM, (key, request, self._server)).fetchone() is not None:
                return None
            found = _KEYS.read(connection.execute("SELECT key, request, job FROM request_keys WHERE key = %s", (key,)))
        if not found:  # it was released in between
            return self.claim(key, request)
        return KeyUse(*found[0][1:])

    def commit(self, key: str, order: dict[str, Any]) -> None:
        """Store the order of the job that was started under a claimed key."""
        with self._database.leased(self._pool) as connection:
            connection.execute("UPDATE request_keys SET job = %s WHERE key = %s", (dump_json(order), key))

    def release(self, key: str) -> None:
        """Forget a claimed key whose request was refused."""
        with self._database.leased(self._pool) as connection:
            connection.execute("DELETE FROM request_keys WHERE key = %s AND server = %s", (key, self._server))

    def clean(self, connection: Any) -> None:
        """Delete the keys of more than a day ago."""
        connection.execute("DELETE FROM request_keys WHERE claimed_at < now() - interval '1 day'")
