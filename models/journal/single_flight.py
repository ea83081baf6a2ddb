"""Coalesces identical calls in flight across event loops and processes: one call is made, the others wait for it.

Between processes, a key is a locked byte of a file, which takes four system calls and no write, and is released when
the process ends for any reason. If files cannot be locked, calls do not wait for those of other processes.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Protocol, Self

from ..concurrency import ThreadSafeEvent

try:
    import fcntl
except ImportError:  # Windows: no waiting for calls of other processes
    fcntl = None  # type: ignore[assignment]

# Another process may hang without ending. After waiting this long, the call is made anyway.
CALL_TIMEOUT = 300.0  # seconds
FIRST_POLL_INTERVAL: Final = 0.01
MAX_POLL_INTERVAL: Final = 0.2
_LOCKED_ERRORS: Final = frozenset({errno.EACCES, errno.EAGAIN})


class CallLocks(Protocol):
    """Locks that keep other processes from making the calls that this process has claimed."""

    def try_acquire(self, key: str) -> bool | Awaitable[bool]:
        """Try to lock a key; returns whether it is now held, as an awaitable if that takes a round trip."""

    def release(self, key: str) -> None:
        """Release the key; never waits."""

    def close(self) -> None:
        """Release all keys."""


class KeyLocks:
    """Keys held by this process, as byte locks in a file, which the last process deletes on closing.

    A lock is valid only while its file is still at the path.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._closed = False
        self._guard = threading.Lock()

    def try_acquire(self, key: str) -> bool:
        if fcntl is None:
            return True
        with self._guard:
            try:
                while not self._closed:
                    if self._file is None:
                        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                        self._file = os.open(self._path, flags, 0o600)
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte_of(key))
                    if self._is_current(self._file):
                        break
                    os.close(self._file)
                    self._file = None
            except OSError as error:
                return error.errno not in _LOCKED_ERRORS  # on a file system without locks every key is free
        return True

    def release(self, key: str) -> None:
        if self._file is not None:
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte_of(key))

    def close(self) -> None:
        """Release all keys, and delete the file if no other process holds a key."""
        with self._guard:
            self._closed = True
            if self._file is None:
                return
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current(self._file):
                    self._path.unlink()
            os.close(self._file)
            self._file = None

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(self._path.stat(follow_symlinks=False), os.fstat(file))
        except FileNotFoundError:
            return False


def _byte_of(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest()) >> 2


class SingleFlight:
    """The keys in flight; obtain it by `shared`, since a process must have one instance per journal."""

    _open: Final[dict[Hashable, SingleFlight]] = {}
    _opening: Final = threading.Lock()

    def __init__(self, locks: CallLocks) -> None:
        self._in_flight: dict[str, ThreadSafeEvent] = {}
        self._guard = threading.Lock()
        self._locks = locks
        self._users = 0

    @classmethod
    def shared(cls, place: Hashable, locks: Callable[[], CallLocks]) -> Self:
        """The shared instance for the journal at `place`, which opens its `locks` first; to be closed after use."""
        with cls._opening:
            found = cls._open.get(place)
            if found is None:
                found = cls._open[place] = cls(locks())
            found._users += 1
        return found  # type: ignore[return-value]

    def close(self) -> None:
        """Close the lock file if nobody else in this process uses it."""
        with self._opening:
            self._users -= 1
            if not self._users:
                for place in [place for place, known in self._open.items() if known is self]:
                    del self._open[place]
                self._locks.close()

    @asynccontextmanager
    async def claim(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """Hold the exclusive right to request `keys` for the block.

        Waits for identical calls in flight; then the caller finds answers in the journal, or makes the call itself if
        the other was cancelled, failed or was killed. Keys are claimed in sorted order, so that overlapping batches
        never deadlock.
        """
        claimed: list[str] = []
        try:
            for key in sorted(set(keys)):
                own = ThreadSafeEvent()
                while True:  # within this process
                    with self._guard:
                        first = self._in_flight.setdefault(key, own)
                    if first is own:
                        break
                    await first.wait()
                claimed.append(key)
                now = asyncio.get_running_loop().time
                deadline, interval = now() + CALL_TIMEOUT, FIRST_POLL_INTERVAL
                while True:  # against other processes
                    taken = self._locks.try_acquire(key)
                    if (await taken if isinstance(taken, Awaitable) else taken) or now() >= deadline:
                        break
                    await asyncio.sleep(interval)
                    interval = min(2 * interval, MAX_POLL_INTERVAL)
            yield
        finally:
            for key in claimed:
                self._locks.release(key)
                with self._guard:
                    event = self._in_flight.pop(key)
                event.set()
