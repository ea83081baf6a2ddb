"""One writer at a time: two processes that write one Chroma lose vectors without an error.

The lock is the operating system's, so it ends with the process that holds it, however that ends; the holder's
process id beside it is only told to others.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from pathvalidate import sanitize_filename

from .home import Home
from .home_safety import REMOVE_IT, UnsafeHomeError

_POLL_SECONDS: Final = 0.1
_LONGEST_PID: Final = 20
# Windows has neither flag, and lets no ordinary user make links.
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


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
            _write_pid(self._pid)
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
            _write_pid(self._pid)
            yield
        finally:
            self._release(lock)

    def _lock(self) -> FileLock:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Not thread-local: a coroutine may end on another thread than it began on.
        return FileLock(self._path, thread_local=False)

    def _release(self, lock: FileLock) -> None:
        self._pid.unlink(missing_ok=True)
        lock.release()

    def _written_pid(self) -> int | None:
        try:
            with os.fdopen(os.open(self._pid, os.O_RDONLY | _NO_LINK), "rb") as file:
                return int(file.read(_LONGEST_PID))
        except (OSError, ValueError):
            return None  # between the holder's taking the lock and writing its id


def _take(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)  # which follows no link
    except Timeout:
        return False
    except OSError as error:
        raise _refused(Path(lock.lock_file), error) from error
    return True


def _write_pid(path: Path) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK, 0o644), "wb") as file:
            file.write(str(os.getpid()).encode())
    except OSError as error:
        raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> Exception:
    """What to raise for a lock that cannot be had: of a link the home is to blame, of anything else the system."""
    if error.errno not in (errno.ELOOP, errno.ENXIO):
        return error
    return UnsafeHomeError(f"{path}: is a link or no plain file.", help=REMOVE_IT)


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
