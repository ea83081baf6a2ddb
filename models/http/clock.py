"""An injectable clock, so that no test ever waits."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """The time source of the journal and the retries."""

    def time(self) -> float:
        """Seconds since the epoch, the same for all processes."""
        ...

    def monotonic(self) -> float:
        """Monotonic seconds, for waiting."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The system's real time."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
