"""One writer at a time: two processes that write one Chroma lose vectors without an error.

The lock is the operating system's, so it ends with the process that holds it, however that ends; the holder's
process id beside it is only told to others.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from pathvalidate import sanitize_filename

from citeloom.stores.home import Home

_POLL_SECONDS: Final = 0.1


class WriterLock:
    """The lock of one home; every instance excludes every other, in this process too."""

    def __init__(self, home: Home) -> None:
        self._path = home.locks / "library.lock"
        self._pid = home.locks / "library.pid"

    def holder(self) -> int | None:
        """The process that holds the lock now, None when it is free."""
        with self.try_held() as free:
            return None if free else self._written_pid()

    @contextlib.contextmanager
    def try_held(self) -> Iterator[bool]:
        """Holds the lock for the block and gives True, or gives False at once when another holds it."""
        lock = self._lock()
        if not _take(lock):
            yield False
            return
        try:
            self._pid.write_text(str(os.getpid()), encoding="ascii")
            yield True
        finally:
            self._release(lock)

    @contextlib.asynccontextmanager
    async def held(self, on_wait: Callable[[int | None], None] | None = None) -> AsyncIterator[None]:
        """Holds the lock for the block; `on_wait(pid)` is called once when another process holds it."""
        lock = self._lock()
        waited = False
        while not _take(lock):
            if not waited and on_wait is not None:
                on_wait(self._written_pid())
            waited = True
            await asyncio.sleep(_POLL_SECONDS)
        try:
            self._pid.write_text(str(os.getpid()), encoding="ascii")
            yield
        finally:
            self._release(lock)

    def _lock(self) -> FileLock:
        Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        # Not thread-local: a coroutine may end on another thread than it began on.
        return FileLock(self._path, thread_local=False)

    def _release(self, lock: FileLock) -> None:
        self._pid.unlink(missing_ok=True)
        lock.release()

    def _written_pid(self) -> int | None:
        try:
            return int(self._pid.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None  # between the holder's taking the lock and writing its id


def _take(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


@contextlib.asynccontextmanager
async def run_lock(home: Home, thread_id: str, on_wait: Callable[[str], None] | None = None) -> AsyncIterator[None]:
    """Holds a run for the block: two equal commands would else pay for the same calls side by side.

    `on_wait` is told once, in a line for a person, that another process holds the run.
    """
    lock = FileLock(_run_lock_path(home, thread_id), thread_local=False)
    waited = False
    while not _take(lock):
        if not waited and on_wait is not None:
            on_wait(f"Run {thread_id} is under way in another process; waiting for it.")
        waited = True
        await asyncio.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()


def run_under_way(home: Home, thread_id: str) -> bool:
    """Whether some process holds a run now."""
    lock = FileLock(_run_lock_path(home, thread_id), thread_local=False)
    if not _take(lock):
        return True
    lock.release()
    return False


def _run_lock_path(home: Home, thread_id: str) -> Path:
    return home.locks / f"{sanitize_filename(thread_id)}.lock"
