"""Equal calls under way: one is made, the others wait for it, each in its own event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress


class Landing:
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


class Flights:
    """Which keys are asked for right now; may be shared by tasks, threads and event loops."""

    def __init__(self) -> None:
        self._under_way: dict[str, Landing] = {}
        self._guard = threading.Lock()

    @asynccontextmanager
    async def claim(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """Be the one who may ask for `keys` for as long as this is open.

        Waits for equal calls under way; whoever comes next then finds their answers in the journal, or makes the
        call when the other was cancelled or failed. Keys are claimed in their order, so that two overlapping
        batches never wait for each other.
        """
        claimed: list[str] = []
        try:
            for key in sorted(set(keys)):
                await self._claim(key)
                claimed.append(key)
            yield
        finally:
            for key in claimed:
                with self._guard:
                    landing = self._under_way.pop(key)
                landing.land()

    def waiting_for(self, key: str) -> int:
        """How many wait for `key`."""
        with self._guard:
            landing = self._under_way.get(key)
            return len(landing._waiting) if landing else 0

    async def _claim(self, key: str) -> None:
        while True:
            with self._guard:
                other = self._under_way.get(key)
                if other is None:
                    self._under_way[key] = Landing()
                    return
                landing = other.join()
            await landing


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
