"""Patience with a busy server: how often, how long, and who else waits. No test waits for real."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from citeloom.models.http.failures import BrokenAnswerError, CallFailedError, ServerRefusalError
from citeloom.models.http.limiter import LONGEST_ASKED, LONGEST_WAIT, Limiter
from tests.support.fake_clock import FakeClock


def limiter(clock: FakeClock, *, at_once: int = 4, retries: int = 3, timeout: float = 5) -> Limiter:
    return Limiter(max_concurrency=at_once, max_retries=retries, timeout=timeout, clock=clock, seed=1)


class Script:
    """A call that raises the given errors one after the other, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


@pytest.mark.parametrize(
    ("errors", "calls"),
    [
        ([], 1),
        ([ServerRefusalError(429, "slow")], 2),
        ([ServerRefusalError(500, "oops"), ServerRefusalError(503, "oops"), ConnectionResetError(1, "x")], 4),
        ([TimeoutError()], 2),
        ([BrokenAnswerError("x"), BrokenAnswerError("x")], 3),
    ],
)
async def test_a_temporary_failure_is_tried_again(errors: list[Exception], calls: int) -> None:
    script = Script(*errors)
    assert await limiter(FakeClock()).run(script) == "answer"
    assert script.calls == calls


@pytest.mark.parametrize(
    ("error", "kind", "calls"),
    [
        (ServerRefusalError(429, "slow"), "busy", 4),
        (ServerRefusalError(503, "oops"), "busy", 4),
        (ConnectionResetError(1, "reset"), "dropped", 4),
        (TimeoutError(), "timeout", 2),
        (BrokenAnswerError("HTML"), "broken", 3),
        (ServerRefusalError(401, "key"), "key", 1),
        (ServerRefusalError(404, "model"), "model", 1),
        (ServerRefusalError(400, "bad"), "request", 1),
        (ServerRefusalError(429, "insufficient_quota"), "quota", 1),
        (ConnectionRefusedError(111, "refused"), "unreachable", 1),
    ],
    ids=str,
)
async def test_a_lasting_failure_is_given_up(error: Exception, kind: str, calls: int) -> None:
    script = Script(*[error] * 20)
    with pytest.raises(CallFailedError) as caught:
        await limiter(FakeClock()).run(script)
    assert (caught.value.failure.kind, caught.value.tries, script.calls) == (kind, calls, calls)


async def test_a_programming_error_is_raised_unchanged() -> None:
    script = Script(KeyError("ours"))
    with pytest.raises(KeyError, match="ours"):
        await limiter(FakeClock()).run(script)
    assert script.calls == 1


async def test_the_pause_is_the_one_requested_by_the_server() -> None:
    clock = FakeClock()
    await limiter(clock).run(Script(ServerRefusalError(429, "slow", 7.0)))
    assert 7.0 <= clock.now - 1_000.0 <= 7.0 * 1.1


async def test_a_pause_that_is_too_long_is_skipped() -> None:
    clock = FakeClock()
    script = Script(ServerRefusalError(429, "slow", LONGEST_ASKED + 1))
    with pytest.raises(CallFailedError) as caught:
        await limiter(clock).run(script)
    assert (script.calls, clock.slept) == (1, [])
    assert caught.value.failure.retry_after == LONGEST_ASKED + 1


async def test_pauses_grow_up_to_a_limit() -> None:
    clock = FakeClock()
    with pytest.raises(CallFailedError):
        await limiter(clock, retries=12).run(Script(*[ServerRefusalError(500, "oops")] * 20))
    # A wait is slept by the one who was refused; others would wait at the gate.
    assert len(clock.slept) == 12
    assert clock.slept[0] < clock.slept[2] < clock.slept[4]
    assert LONGEST_WAIT / 2 <= clock.slept[-1] <= LONGEST_WAIT


async def test_while_one_call_backs_off_new_calls_wait_too() -> None:
    clock = FakeClock()
    model = limiter(clock)
    refused = asyncio.Event()
    sent_at: list[float] = []
    script = Script(ServerRefusalError(429, "slow", 30.0))

    async def first() -> str:
        try:
            return await script()
        finally:
            refused.set()

    async def second() -> str:
        sent_at.append(clock.now)
        return "second"

    async def later() -> str:
        await refused.wait()
        return await model.run(second)

    await asyncio.gather(model.run(first), later())
    assert sent_at[0] >= 1_030.0


async def test_no_more_concurrent_calls_than_allowed_are_made() -> None:
    model = limiter(FakeClock(), at_once=3)
    under_way, most = 0, 0

    async def call() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    await asyncio.gather(*[model.run(call) for _ in range(20)])
    assert most == 3


async def test_a_hanging_call_is_cut_off() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(CallFailedError) as caught:
        await limiter(FakeClock(), timeout=0.01).run(hang)
    assert (caught.value.failure.kind, caught.value.tries) == ("timeout", 2)


async def test_a_cancelled_call_is_not_tried_again() -> None:
    calls = 0

    async def hang() -> None:
        nonlocal calls
        calls += 1
        await asyncio.Event().wait()

    task = asyncio.create_task(limiter(FakeClock()).run(hang))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert calls == 1


def test_one_limiter_serves_several_event_loops() -> None:
    model = limiter(FakeClock(), at_once=1)

    async def several() -> list[str]:
        return await asyncio.gather(*[model.run(Script()) for _ in range(3)])

    assert asyncio.run(several()) == asyncio.run(several()) == ["answer"] * 3


async def test_all_callers_retry_a_server_that_disappeared() -> None:
    clock = FakeClock()
    patient = limiter(clock)
    assert await patient.run(Script()) == "answer"
    refused = ConnectionRefusedError(111, "refused")
    assert await patient.run(Script(refused, refused)) == "answer"
    gone = Script(*[refused] * 20)
    with pytest.raises(CallFailedError) as caught:
        await patient.run(gone)
    assert (caught.value.failure.kind, gone.calls) == ("unreachable", 4)


async def test_time_in_the_queue_does_not_count_against_the_server() -> None:
    """A call that waits for the budget must not be treated as a call without an answer."""
    gate = asyncio.Event()
    order: list[str] = []

    @asynccontextmanager
    async def admission() -> AsyncIterator[None]:
        await gate.wait()
        order.append("admitted")
        yield
        order.append("left")

    task = asyncio.create_task(limiter(FakeClock(), timeout=0.001).run(Script(), admission))
    for _ in range(3):
        await asyncio.sleep(0.002)  # longer than the time-out
    gate.set()
    assert await task == "answer"
    assert order == ["admitted", "left"]
