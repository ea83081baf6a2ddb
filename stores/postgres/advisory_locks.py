"""Advisory locks: the library's writer, runs and calls in flight, across all computers that use a database.

A lock belongs to its connection, so the server frees it when the holding process ends for any reason. Connect to the
server directly: a pool that assigns connections per transaction, such as PgBouncer's, loses session locks.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from ...errors import CiteloomError
from ...settings.addresses import DatabaseUrl
from .database import Database, application_name

_POLL_SECONDS: Final = 0.2
# Locks of different libraries in one database differ by the schema.
_KEY: Final = "hashtextextended(current_schema() || ':' || %s, 0)"
_HOLDER: Final = f"""
SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (l.classid::bigint << 32 | l.objid::bigint) = {_KEY}
"""


def try_lock(connection: Any, name: str) -> bool:
    """Try to take a lock for the life of `connection`, without waiting."""
    return bool(connection.execute(f"SELECT pg_try_advisory_lock({_KEY})", (name,)).fetchone()[0])


def unlock(connection: Any, name: str) -> bool:
    """Free a lock of this connection; returns whether it held it."""
    return bool(connection.execute(f"SELECT pg_advisory_unlock({_KEY})", (name,)).fetchone()[0])


class DatabaseLock:
    """A lock of a library: its writer's, or that of a run."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._name = name

    def is_held(self) -> bool:
        return self._holding_application() is not None

    def holder(self) -> int | None:
        """The process that holds the lock; 0 if it runs on another computer."""
        application = self._holding_application()
        if application is None:
            return None
        own, host, *_ = [*application.removeprefix("citeloom ").split(" "), ""]
        here = application_name().split(" ")[2]
        return int(own) if own.isdigit() and host == here else 0

    def _holding_application(self) -> str | None:
        with self._database.transaction() as connection:
            row = connection.execute(_HOLDER, (self._name,)).fetchone()
        return None if row is None else str(row[0])

    @contextlib.contextmanager
    def try_held(self) -> Iterator[bool]:
        with contextlib.closing(self._database.connect(autocommit=True)) as connection:
            with self._database.translate_errors():
                held = try_lock(connection, self._name)
            try:
                yield held
            finally:
                with contextlib.suppress(CiteloomError), self._database.translate_errors():
                    unlock(connection, self._name)  # the server learns of a closed connection only later

    @contextlib.asynccontextmanager
    async def held(self, on_wait: Callable[[int | None], object] | None = None) -> AsyncIterator[None]:
        connection, notified = await self._database.connect_async(), on_wait is None
        try:
            with self._database.translate_errors():
                take = f"SELECT pg_try_advisory_lock({_KEY})"
                while await (await connection.execute(take, (self._name,))).fetchone() != (True,):
                    if on_wait is not None and not notified:
                        on_wait(await asyncio.to_thread(self.holder) or None)
                    notified = True
                    await asyncio.sleep(_POLL_SECONDS)
            yield
        finally:
            await asyncio.shield(_release(connection))


async def _release(connection: Any) -> None:
    """Free the locks and close: the server learns of a closed connection only later."""
    from psycopg import Error

    with contextlib.suppress(Error):  # the connection is lost, and its locks with it
        await connection.execute("SELECT pg_advisory_unlock_all()")
    await connection.close()


class DatabaseCallLocks:
    """Keys of calls in flight, on a connection of one thread, so that the event loop never waits for the server.

    A lost connection loses its locks: a key then counts as free, and another computer may make the same call.
    """

    def __init__(self, url: DatabaseUrl) -> None:
        self._database = Database(url)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="call locks")
        self._connection: Any = None

    async def try_acquire(self, key: str) -> bool:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._change, try_lock, key)
        except asyncio.CancelledError:
            self.release(key)  # runs after the attempt to take it, since the thread works in order
            raise

    def release(self, key: str) -> None:
        self._thread.submit(self._change, unlock, key)

    def close(self) -> None:
        closing, self._thread = self._thread, ThreadPoolExecutor(1, thread_name_prefix="call locks")
        closing.shutdown()  # once the queued work is done
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _change(self, change: Callable[[Any, str], bool], key: str) -> bool:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._database.connect(autocommit=True)
            with self._database.translate_errors():
                return change(self._connection, f"call:{key}")
        except CiteloomError:
            self._connection = None  # the journal, on the same database, reports it
            return True
