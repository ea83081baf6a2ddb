"""LangGraph checkpoints on SQLite, from which a killed run resumes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID
from weakref import WeakKeyDictionary

from ..sqlite import CHECKPOINTS_REMEDY, make_write_ahead, naming_damage, require_plain_schema

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


class _Shared:
    """The saver of one file, for all that use it on one event loop at the same time."""

    def __init__(self) -> None:
        self.users = 0
        self.saver: AsyncSqliteSaver | None = None
        self.opening = asyncio.Lock()
        self.stack = AsyncExitStack()


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, _Shared]] = WeakKeyDictionary()


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    """Open a saver on the file at `path`, creating the file if it is missing.

    `synchronous=FULL`: a step reported as done survives a power cut. Checkpoints are read as plain values
    (`stores/safe_msgpack.py`). Runs on one event loop share a saver, which writes in turn: many connections that wait
    for SQLite's lock get it in no order, and some never. Raises `DamagedFileError`, now or on a later read, for what
    cannot be read.
    """
    of_loop = _shared.setdefault(asyncio.get_running_loop(), {})
    shared = of_loop.setdefault(path, _Shared())
    shared.users += 1
    try:
        with naming_damage(path, CHECKPOINTS_REMEDY):
            async with shared.opening:
                if shared.saver is None:
                    shared.saver = await _opened(path, shared.stack)
            yield shared.saver
    finally:
        try:
            if shared.users > 1 and shared.saver is not None:
                await _end_transaction(shared.saver)
        finally:
            shared.users -= 1
            if not shared.users:
                if of_loop.get(path) is shared:
                    del of_loop[path]
                await shared.stack.aclose()


async def _opened(path: Path, stack: AsyncExitStack) -> AsyncSqliteSaver:
    import aiosqlite

    from .safe_msgpack import PlainSaver

    await asyncio.to_thread(_prepare, path)
    connection = await stack.enter_async_context(aiosqlite.connect(path, timeout=30))
    stack.push_async_callback(connection._execute, _rolled_back_and_closed, connection._conn)
    await connection.execute("PRAGMA synchronous=FULL")
    saver = PlainSaver(connection, path)
    await saver.setup()
    await continue_ids(connection)
    return saver


async def _end_transaction(saver: AsyncSqliteSaver) -> None:
    """Release SQLite's lock after a user that was cancelled between a statement and its commit.

    The statement may still wait for its turn in the connection's thread; the rollback comes after it.
    """
    async with saver.lock:
        await saver.conn.rollback()


def _rolled_back_and_closed(connection: sqlite3.Connection) -> None:
    """Close the connection for good, in one step of its thread.

    A write that was cancelled before its commit would otherwise keep the file locked until Python deletes the cursor,
    which the traceback of the cancelled task still holds.
    """
    connection.rollback()
    connection.close()


def _prepare(path: Path) -> None:
    make_write_ahead(path)
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        require_plain_schema(connection, path, CHECKPOINTS_REMEDY)


async def keep_latest(saver: AsyncSqliteSaver, thread_id: str) -> None:
    """Delete all checkpoints of a thread but its latest, including those of its subgraphs.

    For long-lived threads: each step writes the whole state again, and finished steps are never resumed from.
    """
    latest = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns = '')"
    async with saver.lock, saver.conn.cursor() as cursor:
        for table in ("writes", "checkpoints"):
            await cursor.execute(
                f"DELETE FROM {table} WHERE thread_id = :thread AND (checkpoint_ns != '' OR checkpoint_id < {latest})",
                {"thread": thread_id},
            )
        await saver.conn.commit()


if TYPE_CHECKING:
    from aiosqlite import Connection


async def continue_ids(connection: Connection) -> None:
    """Make this process generate checkpoint ids higher than any in the file of `connection`."""
    from langgraph.checkpoint.base import id as ids

    async with connection.execute("SELECT max(checkpoint_id) FROM checkpoints") as cursor:
        newest = await cursor.fetchone()
    with suppress(ValueError, TypeError, IndexError):  # no checkpoint yet, or an id that LangGraph did not generate
        made = ids.UUID(hex=UUID((newest or [""])[0]).hex)
        if made.version == 6 and made.time > (ids._last_v6_timestamp or 0):
            ids._last_v6_timestamp = made.time  # type: ignore[assignment]
