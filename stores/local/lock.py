"""Lock files for the library's single writer and for runs.

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

from ..home import Home, UnsafeHomeError

_POLL_SECONDS: Final = 0.1
_LONGEST_PID: Final = 20
# Windows has neither flag, and does not let ordinary users create links.
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class FolderLock:
    """A lock in a home: the library's, or that of a run; instances exclude each other even within a process."""

    def __init__(self, home: Home, name: str = "library") -> None:
        stem = home.locks / sanitize_filename(name)
        self._path = stem.with_name(f"{stem.name}.lock")
        self._pid = stem.with_name(f"{stem.name}.pid")

    def is_held(self) -> bool:
        lock = self._lock()
        if not try_acquire(lock):
            return True
        lock.release()
        return False

    def holder(self) -> int | None:
        return self._written_pid() if self.is_held() else None

    @contextlib.contextmanager
    def try_held(self) -> Iterator[bool]:
        lock = self._lock()
        if not try_acquire(lock):
            yield False
            return
        with self._naming_holder(lock):
            yield True

    @contextlib.asynccontextmanager
    async def held(self, on_wait: Callable[[int | None], object] | None = None) -> AsyncIterator[None]:
        lock, notified = self._lock(), on_wait is None
        while not try_acquire(lock):
            if on_wait is not None and not notified:
                on_wait(self._written_pid())
            notified = True
            await asyncio.sleep(_POLL_SECONDS)
        with self._naming_holder(lock):
            yield

    def _lock(self) -> FileLock:
        # Not thread-local: a coroutine may finish on another thread than it started on.
        return FileLock(self._path, thread_local=False)

    @contextlib.contextmanager
    def _naming_holder(self, lock: FileLock) -> Iterator[None]:
        """Release an acquired lock after the block, during which this process is named beside it."""
        try:
            try:
                descriptor = os.open(self._pid, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK, 0o644)
            except OSError as error:
                raise _open_error(self._pid, error) from error
            with os.fdopen(descriptor, "wb") as file:
                file.write(str(os.getpid()).encode())
            yield
        finally:
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


def _open_error(path: Path, error: OSError) -> Exception:
    """The error for a lock file that cannot be opened: `UnsafeHomeError` for a link, else the OS error."""
    if error.errno not in (errno.ELOOP, errno.ENXIO):
        return error
    return UnsafeHomeError(f"{path}: is a link or not a plain file.")
