"""File locks for the library's single writer and for runs.

Two processes that write the same Chroma folder lose vectors without an error. The operating system releases a lock
when its process ends for any reason; the holder's process id is stored next to it only for messages.
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

from .folder_home import REMOVE_IT, FolderHome, UnsafeHomeError

_POLL_SECONDS: Final = 0.1
_LONGEST_PID: Final = 20
# Windows has neither flag, and does not let ordinary users create links.
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class WriterLock:
    """The writer lock of a home; instances exclude each other even within a process."""

    def __init__(self, home: FolderHome) -> None:
        self._path = home.locks / "library.lock"
        self._pid = home.locks / "library.pid"

    def holder(self) -> int | None:
        with self.try_held() as free:
            return None if free else self._written_pid()

    @contextlib.contextmanager
    def try_held(self) -> Iterator[bool]:
        lock = self._lock()
        if not try_acquire(lock):
            yield False
            return
        try:
            _write_pid(self._pid)
            yield True
        finally:
            self._release(lock)

    @contextlib.asynccontextmanager
    async def held(self, on_wait: Callable[[int | None], None] | None = None) -> AsyncIterator[None]:
        lock = self._lock()
        await _acquire(lock, lambda: on_wait and on_wait(self._written_pid()))
        try:
            _write_pid(self._pid)
            yield
        finally:
            self._release(lock)

    def _lock(self) -> FileLock:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Not thread-local: a coroutine may finish on another thread than it started on.
        return FileLock(self._path, thread_local=False)

    def _release(self, lock: FileLock) -> None:
        self._pid.unlink(missing_ok=True)
        lock.release()

    def _written_pid(self) -> int | None:
        try:
            with os.fdopen(os.open(self._pid, os.O_RDONLY | _NO_LINK), "rb") as file:
                return int(file.read(_LONGEST_PID))
        except (OSError, ValueError):
            return None  # the holder has taken the lock but not yet written its id


def try_acquire(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)  # does not follow links
    except Timeout:
        return False
    except OSError as error:
        raise _open_error(Path(lock.lock_file), error) from error
    return True


async def _acquire(lock: FileLock, tell: Callable[[], object]) -> None:
    """Wait for a lock; `tell` is called once if another process has it."""
    waited = False
    while not try_acquire(lock):
        if not waited:
            tell()
        waited = True
        await asyncio.sleep(_POLL_SECONDS)


def _write_pid(path: Path) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK, 0o644), "wb") as file:
            file.write(str(os.getpid()).encode())
    except OSError as error:
        raise _open_error(path, error) from error


def _open_error(path: Path, error: OSError) -> Exception:
    """The error for a lock file that cannot be opened: `UnsafeHomeError` for a link, else the OS error."""
    if error.errno not in (errno.ELOOP, errno.ENXIO):
        return error
    return UnsafeHomeError(f"{path}: is a link or not a plain file.", help=REMOVE_IT)


@contextlib.asynccontextmanager
async def run_lock(
    home: FolderHome, thread_id: str, on_wait: Callable[[str], None] | None = None
) -> AsyncIterator[None]:
    """Lock a run for the block, so that two identical commands do not pay for the same calls in parallel.

    `on_wait` is called once with a message if another process holds the run.
    """
    lock = FileLock(_run_lock_path(home, thread_id), thread_local=False)
    message = f"Run {thread_id} is in progress in another process; waiting for it."
    await _acquire(lock, lambda: on_wait and on_wait(message))
    try:
        yield
    finally:
        lock.release()


def run_under_way(home: FolderHome, thread_id: str) -> bool:
    """Whether a process currently holds the lock of a run."""
    lock = FileLock(_run_lock_path(home, thread_id), thread_local=False)
    if not try_acquire(lock):
        return True
    lock.release()
    return False


def _run_lock_path(home: FolderHome, thread_id: str) -> Path:
    return home.locks / f"{sanitize_filename(thread_id)}.lock"
