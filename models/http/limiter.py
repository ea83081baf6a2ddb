"""Limits concurrency and retries of the calls to each model.

A busy server is retried after the time it requests, else with exponential backoff and jitter; new calls wait too.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from ..concurrency import LoopLocal, thread_safe_cache
from .endpoints import ModelIdentity
from .failures import CallFailedError, FailureKind, classify_failure

if TYPE_CHECKING:
    from ...settings.config import Settings

T = TypeVar("T")
# A context manager around each try, entered when its turn comes; waiting in it does not count towards the timeout.
Admission = Callable[[], AbstractAsyncContextManager[None]]

FIRST_WAIT: Final = 0.5  # seconds; doubles with each try
LONGEST_WAIT: Final = 60.0
# Requested waits longer than this are not honoured: the run pauses with a message.
LONGEST_ASKED: Final = 120.0
# Maximum retries per kind: such a call may have been paid for, or will not get a better answer.
_RETRIES: Final[dict[FailureKind, int]] = {"timeout": 1, "broken": 2}
_RETRIED: Final = frozenset({"busy", "dropped", "timeout", "broken"})
_ALL_WAIT: Final = frozenset({"busy", "unreachable"})


class Clock:
    """The system clock, used by the journal and for retries; tests replace it."""

    def time(self) -> float:
        """Seconds since the epoch, the same for all processes."""
        return time.time()

    def monotonic(self) -> float:
        """Monotonic seconds, for waiting."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(kw_only=True, eq=False)
class Limiter:
    """Limits and retries the calls to one model; may be shared by threads and event loops."""

    max_concurrency: int  # concurrent calls, per event loop
    max_retries: int  # tries after the first
    timeout: float  # seconds for one try, from the first byte sent to the last received
    clock: Clock = field(default_factory=Clock)
    seed: int | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._resume_at = 0.0
        self._answered = False
        self._slots = LoopLocal(lambda: asyncio.Semaphore(self.max_concurrency))

    async def run(self, call: Callable[[], Awaitable[T]], admission: Admission = nullcontext) -> T:
        """The result of `call`, each try inside its `admission`; raises `CallFailedError`, other errors as they are."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self._try_once(call, tries, admission)
            except CallFailedError as error:
                failure, asked = error.failure, error.failure.retry_after
                # A server that answered before may be restarting; one that never did does not exist.
                retried = failure.kind in _RETRIED or (failure.kind == "unreachable" and self._answered)
                allowed = min(self.max_retries, _RETRIES.get(failure.kind, self.max_retries))
                if not retried or tries > allowed or (asked or 0.0) > LONGEST_ASKED:
                    raise
            # Jitter, so that twenty refused calls are not retried in the same millisecond.
            wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (tries - 1)) * self._random.uniform(0.5, 1.0)
            if asked is not None:
                wait = asked * self._random.uniform(1.0, 1.1)
            if failure.kind in _ALL_WAIT:
                self._resume_at = max(self._resume_at, self.clock.monotonic() + wait)
            await self.clock.sleep(wait)

    async def _try_once(self, call: Callable[[], Awaitable[T]], tries: int, admission: Admission) -> T:
        async with self._slots.get():
            while (left := self._resume_at - self.clock.monotonic()) > 0:
                await self.clock.sleep(left)
            async with admission():
                try:
                    async with asyncio.timeout(self.timeout):
                        answer = await call()
                except Exception as error:
                    failure = classify_failure(error)
                    if failure is None:
                        raise
                    raise CallFailedError(failure, tries) from error
            self._answered = True
            return answer


def limiter_for(settings: Settings, identity: ModelIdentity) -> Limiter:
    """The limiter of a model, shared by all runs of this process with the same limits."""
    limits = (settings.max_concurrency, settings.max_retries, settings.request_timeout)
    return _limiter(identity.endpoint, identity.model, *limits)


@thread_safe_cache
def _limiter(_endpoint: str, _model: str, max_concurrency: int, max_retries: int, timeout: float) -> Limiter:
    return Limiter(max_concurrency=max_concurrency, max_retries=max_retries, timeout=timeout)
