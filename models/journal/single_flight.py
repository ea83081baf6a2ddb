"""Equal calls under way: one is made, the others wait for it, each in its own event loop or process.

Between processes a key is a byte of a file that nobody reads, locked by whoever asks for it: four system calls,
no write, and the lock ends with its process, however that ends. Where files cannot be locked, nobody waits.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Self

try:
    import fcntl
except ImportError:  # Windows: calls of other processes are not waited for
    fcntl = None  # type: ignore[assignment]

# Another process may stand still without ending. Whoever has waited so long makes the call too.
PATIENCE = 300.0  # seconds
_FIRST_LOOK: Final = 0.01
_LONGEST_LOOK: Final = 0.2
_HELD: Final = frozenset({errno.EACCES, errno.EAGAIN})


class CrossLoopEvent:
    """Something that several event loops wait for."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def join(self) -> asyncio.Future[None]:
        """A future of the running loop that is done once this has landed."""
        landing = asyncio.get_running_loop().create_future()
        self._waiting.append(landing)
        return landing

    def land(self) -> None:
        """Wake all who wait; to be called once, when nobody can join any more."""
        for landing in self._waiting:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                landing.get_loop().call_soon_threadsafe(_settle, landing)


class KeyLocks:
    """Keys that this process holds, as locks on bytes of a file.

    It is made for the first key and taken away by the last process that closes it: a key counts only while the file in
    which it was locked is in its place.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._closed = False
        self._guard = threading.Lock()

    def take(self, key: str) -> bool:
        """Whether the key is free for this process, and its own from now on; never waits."""
        if fcntl is None:
            return True
        with self._guard:
            try:
                while not self._closed:
                    if self._file is None:
                        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                        self._file = os.open(self._path, flags, 0o600)
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte_of(key))
                    if self._in_place(self._file):
                        break
                    os.close(self._file)
                    self._file = None
            except OSError as error:
                return error.errno not in _HELD  # a file system without locks keeps nobody from asking
        return True

    def give_back(self, key: str) -> None:
        """Let others have the key."""
        if self._file is not None:
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte_of(key))

    def close(self) -> None:
        """Give back all keys, and leave no file that nobody else has a key in."""
        with self._guard:
            self._closed = True
            if self._file is None:
                return
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._in_place(self._file):
                    self._path.unlink()
            os.close(self._file)
            self._file = None

    def _in_place(self, file: int) -> bool:
        try:
            return os.path.samestat(self._path.stat(follow_symlinks=False), os.fstat(file))
        except FileNotFoundError:
            return False


def _byte_of(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest()) >> 2


class SingleFlight:
    """Which keys are asked for right now; may be shared by tasks, threads and event loops.

    Use `of`: within a process one journal's flights are shared, since a process holds its locks as a whole.
    """

    _open: Final[dict[Path, SingleFlight]] = {}
    _opening: Final = threading.Lock()

    def __init__(self, locks: KeyLocks) -> None:
        self._under_way: dict[str, CrossLoopEvent] = {}
        self._guard = threading.Lock()
        self._locks = locks
        self._users = 0

    @classmethod
    def of(cls, path: Path) -> Self:
        """The flights of the journal at `path`, to be closed."""
        place = path.resolve()
        with cls._opening:
            found = cls._open.get(place)
            if found is None:
                found = cls._open[place] = cls(KeyLocks(place.with_name(f"{place.name}-calls")))
            found._users += 1
        return found  # type: ignore[return-value]

    def close(self) -> None:
        """Let go of the file when nobody else in this process uses it."""
        with self._opening:
            self._users -= 1
            if not self._users:
                for place in [place for place, known in self._open.items() if known is self]:
                    del self._open[place]
                self._locks.close()

    @asynccontextmanager
    async def claim(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """Be the one who may ask for `keys` for as long as this is open.

        Waits for equal calls under way; whoever comes next then finds their answers in the journal, or makes the
        call when the other was cancelled, failed or was killed. Keys are claimed in their order, so that two
        overlapping batches never wait for each other.
        """
        claimed: list[str] = []
        try:
            for key in sorted(set(keys)):
                await self._claim(key)
                claimed.append(key)
                await self._claim_of_others(key)
            yield
        finally:
            for key in claimed:
                self._locks.give_back(key)
                with self._guard:
                    landing = self._under_way.pop(key)
                landing.land()

    def waiting_for(self, key: str) -> int:
        """How many wait for `key` in this process."""
        with self._guard:
            landing = self._under_way.get(key)
            return len(landing._waiting) if landing else 0

    async def _claim(self, key: str) -> None:
        while True:
            with self._guard:
                other = self._under_way.get(key)
                if other is None:
                    self._under_way[key] = CrossLoopEvent()
                    return
                landing = other.join()
            await landing

    async def _claim_of_others(self, key: str) -> None:
        if self._locks.take(key):
            return
        now = asyncio.get_running_loop().time
        until, look = now() + PATIENCE, _FIRST_LOOK
        while now() < until:
            await asyncio.sleep(look)
            if self._locks.take(key):
                return
            look = min(2 * look, _LONGEST_LOOK)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
