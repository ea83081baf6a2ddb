"""A clock whose time passes only during sleeps."""

from __future__ import annotations

import asyncio


class FakeClock:
    """Implements `Clock`; `slept` lists every wait."""

    def __init__(self, start: float = 1_000.0) -> None:
        self.now = start
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        awake = self.now + seconds
        await asyncio.sleep(0)  # others see the time before it has passed
        self.now = max(self.now, awake)
