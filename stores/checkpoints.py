"""Checkpoints of runs, on SQLite: what a killed run goes on from."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING

from citeloom.models.write_ahead import make_write_ahead
from citeloom.stores.checkpoint_order import continue_ids
from citeloom.stores.damage import CHECKPOINTS_REMEDY, naming_damage, require_plain_schema

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    """A saver on the file at `path`, which is made when it is not there.

    `synchronous=FULL`: a step that was told as done is still done after a power cut. Values are read as values
    (`stores/plain_values.py`). Raises `DamagedFileError`, there and later, for what cannot be read.
    """
    import aiosqlite

    from citeloom.stores.plain_values import PlainSaver

    with naming_damage(path, CHECKPOINTS_REMEDY):
        await asyncio.to_thread(_prepare, path)
        async with aiosqlite.connect(path, timeout=30) as connection:
            await connection.execute("PRAGMA synchronous=FULL")
            saver = PlainSaver(connection, path)
            await saver.setup()
            await continue_ids(connection)
            yield saver


def _prepare(path: Path) -> None:
    make_write_ahead(path)
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        require_plain_schema(connection, path, CHECKPOINTS_REMEDY)


async def keep_latest(saver: AsyncSqliteSaver, thread_id: str) -> None:
    """Drop all checkpoints of a thread but its latest, with those of the graphs inside it.

    For a thread that goes on for long: each step writes the whole state again, and none that is over is gone back to.
    """
    latest = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '')"
    async with saver.lock, saver.conn.cursor() as cursor:
        for table in ("writes", "checkpoints"):
            await cursor.execute(
                f"DELETE FROM {table} WHERE thread_id = :thread AND (checkpoint_ns != '' OR checkpoint_id < {latest})",
                {"thread": thread_id},
            )
        await saver.conn.commit()
