"""LangGraph checkpoints on SQLite, from which a killed run resumes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from ...models.concurrency import LoopLocal
from ...sqlite import CHECKPOINTS_REMEDY, DamagedFileError, naming_damage, require_plain_schema, write_ahead
from ...table_columns import text_or_bytes
from ..safe_msgpack import ENCODINGS, NEWEST, PlainCheckpoints, PlainSerializer, continue_after


class PlainSaver(PlainCheckpoints, AsyncSqliteSaver):
    """Saver for the file at `path` that reads checkpoints as plain values."""

    tables = "tables checkpoints and writes"
    remedy = CHECKPOINTS_REMEDY

    def __init__(self, connection: aiosqlite.Connection, path: Path) -> None:
        super().__init__(connection, serde=PlainSerializer(path))
        self.place = path

    async def _wrong_row(self, thread_id: str) -> str:
        for table, column in (("checkpoints", "checkpoint"), ("writes", "value")):
            query = f"SELECT checkpoint_id, type, {column} FROM {table} WHERE thread_id = ?"
            async with self.conn.execute(query, (thread_id,)) as cursor:
                async for checkpoint_id, kind, content in cursor:
                    try:
                        self.serde.loads_typed((kind, content))
                    except DamagedFileError:
                        row = f"thread_id={thread_id!r} checkpoint_id={str(checkpoint_id)[:60]!r}"
                        return f"table {table}, column {column if kind in ENCODINGS else 'type'}, row {row}"
        return await super()._wrong_row(thread_id)

    async def keep_latest(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread but its latest, including those of its subgraphs."""
        latest = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '')"
        async with self.lock, self.conn.cursor() as cursor:
            for table in ("writes", "checkpoints"):
                await cursor.execute(
                    f"DELETE FROM {table} WHERE thread_id = :thread"
                    f" AND (checkpoint_ns != '' OR checkpoint_id < {latest})",
                    {"thread": thread_id},
                )
            await self.conn.commit()


_turns: LoopLocal[dict[Path, asyncio.Lock]] = LoopLocal(dict)


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[PlainSaver]:
    """Open a saver on the file at `path`, creating the file if it is missing.

    `synchronous=FULL` makes reported steps survive a power cut. Savers of one event loop write in turn: SQLite's lock
    is not fair, so some of many waiting connections would starve. Raises `DamagedFileError`, now or on a later read,
    for unreadable data.
    """

    def prepare() -> None:
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            write_ahead(connection)
            require_plain_schema(connection, path, CHECKPOINTS_REMEDY)

    with naming_damage(path, CHECKPOINTS_REMEDY):
        await asyncio.to_thread(prepare)
        async with aiosqlite.connect(path, timeout=30) as connection:
            try:
                connection.text_factory = text_or_bytes
                await connection.execute("PRAGMA synchronous=FULL")
                saver = PlainSaver(connection, path)
                saver.lock = _turns.get().setdefault(path, saver.lock)
                await saver.setup()
                async with connection.execute(NEWEST) as cursor:
                    found = await cursor.fetchone()
                continue_after(found[0] if found else None)
                yield saver
            finally:
                in_its_thread: Any = connection._execute
                await in_its_thread(_roll_back_and_close, connection._conn)


def _roll_back_and_close(connection: sqlite3.Connection) -> None:
    """Close the connection for good, in one step of its thread.

    A write that was cancelled before its commit would otherwise keep the file locked until Python deletes the cursor,
    which the traceback of the cancelled task still holds.
    """
    connection.rollback()
    connection.close()
