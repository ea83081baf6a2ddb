"""LangGraph checkpoints in PostgreSQL, from which a killed run resumes on any computer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row

from ...settings.addresses import DatabaseUrl
from ..safe_msgpack import NEWEST, PlainCheckpoints, PlainSerializer, continue_after
from .database import Database


class PlainPostgresSaver(PlainCheckpoints, AsyncPostgresSaver):
    """Saver for the database at `url` that reads checkpoints as plain values."""

    tables = "tables checkpoints, checkpoint_blobs and checkpoint_writes"
    remedy = "Delete the run with 'runs delete', or restore a backup; paid answers are in the journal."

    def __init__(self, connection: Any, url: DatabaseUrl) -> None:
        super().__init__(connection, serde=PlainSerializer(url))
        self.place = url

    async def keep_latest(self, thread_id: str) -> None:
        latest = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = '')"
        old = f"thread_id = %(thread)s AND (checkpoint_ns <> '' OR checkpoint_id < {latest})"
        unused = """
            thread_id = %(thread)s AND NOT EXISTS (
                SELECT 1 FROM checkpoints c WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns
                AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version)
        """
        async with self._cursor() as cursor, cursor.connection.transaction():
            await cursor.execute(f"DELETE FROM checkpoint_writes WHERE {old}", {"thread": thread_id})
            await cursor.execute(f"DELETE FROM checkpoints WHERE {old}", {"thread": thread_id})
            await cursor.execute(f"DELETE FROM checkpoint_blobs b WHERE {unused}", {"thread": thread_id})


@asynccontextmanager
async def open_database_checkpoints(database: Database) -> AsyncIterator[PlainPostgresSaver]:
    """Open a saver on the database; raises `ConnectionLostError`, now or in a step whose connection is lost."""
    connection = await database.connect_async(prepare_threshold=0, row_factory=dict_row)
    try:
        with database.translate_errors():
            cursor = await connection.execute(NEWEST)
            found = await cursor.fetchone()
            continue_after(found["max"] if found else None)
            yield PlainPostgresSaver(connection, database.url)
    finally:
        await connection.close()
