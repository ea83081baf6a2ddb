"""LangGraph checkpoints on SQLite, from which a killed run resumes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ...models.concurrency import LoopLocal
from ...sqlite import CHECKPOINTS_REMEDY, naming_damage, require_plain_schema, write_ahead
from ...table_columns import text_or_bytes

if TYPE_CHECKING:
    from ..safe_msgpack import PlainSaver


@dataclass
class _Shared:
    """The saver of one file, shared by its concurrent users on one event loop."""

    users: int = 0
    saver: PlainSaver | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)


_shared: LoopLocal[dict[Path, _Shared]] = LoopLocal(dict)


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[PlainSaver]:
    """Open a saver on the file at `path`, creating the file if it is missing.

    `synchronous=FULL`: a step reported as done survives a power cut. Checkpoints are read as plain values
    (`stores/safe_msgpack.py`). Runs on one event loop share a saver, which writes in turn: SQLite's lock is not fair,
    so some of many waiting connections would starve. Raises `DamagedFileError`, now or on a later read, for unreadable
    data.
    """
    of_loop = _shared.get()
    shared = of_loop.setdefault(path, _Shared())
    shared.users += 1
    try:
        with naming_damage(path, CHECKPOINTS_REMEDY):
            async with shared.opening:
                if shared.saver is None:
                    shared.saver = await _open_saver(path, shared.stack)
            yield shared.saver
    finally:
        try:
            if shared.users > 1 and shared.saver is not None:
                # A user that was cancelled between a statement and its commit holds SQLite's lock. The statement may
                # still wait for its turn in the connection's thread; the rollback comes after it.
                async with shared.saver.lock:
                    await shared.saver.conn.rollback()
        finally:
            shared.users -= 1
            if not shared.users:
                if of_loop.get(path) is shared:
                    del of_loop[path]
                await shared.stack.aclose()


async def _open_saver(path: Path, stack: AsyncExitStack) -> PlainSaver:
    import aiosqlite

    from ..safe_msgpack import NEWEST, PlainSaver, continue_after  # with LangGraph, which lists do not need

    def prepare() -> None:
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            write_ahead(connection)
            require_plain_schema(connection, path, CHECKPOINTS_REMEDY)

    await asyncio.to_thread(prepare)
    connection = await stack.enter_async_context(aiosqlite.connect(path, timeout=30))
    stack.push_async_callback(connection._execute, _roll_back_and_close, connection._conn)
    connection.text_factory = text_or_bytes
    await connection.execute("PRAGMA synchronous=FULL")
    saver = PlainSaver(connection, path)
    await saver.setup()
    async with connection.execute(NEWEST) as cursor:
        found = await cursor.fetchone()
    continue_after(found[0] if found else None)
    return saver


def _roll_back_and_close(connection: sqlite3.Connection) -> None:
    """Close the connection for good, in one step of its thread.

    A write that was cancelled before its commit would otherwise keep the file locked until Python deletes the cursor,
    which the traceback of the cancelled task still holds.
    """
    connection.rollback()
    connection.close()
