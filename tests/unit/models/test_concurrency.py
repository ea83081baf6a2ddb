"""One of each thing in a process, and one event loop for all blocking calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from citeloom.models.concurrency import (
    LoopLocal,
    ThreadSafeEvent,
    iterate_async,
    run_async,
    stop_background_loop,
    thread_safe_cache,
)


def test_threads_asking_at_once_get_the_same_value() -> None:
    """The factory waits until all eight threads have asked, so only one factory can be running."""
    asked = threading.Barrier(8)
    made: list[object] = []

    @thread_safe_cache
    def make(_: str) -> object:
        made.append(object())
        return made[-1]

    def ask() -> object:
        asked.wait(timeout=300)
        return make("one")

    with ThreadPoolExecutor(8) as pool:
        got = [future.result() for future in [pool.submit(ask) for _ in range(8)]]
    assert len(made) == 1
    assert {id(thing) for thing in got} == {id(made[0])}
    assert make("two") is not made[0]


async def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_blocking_calls_from_all_threads_share_one_loop_until_it_is_stopped() -> None:
    with ThreadPoolExecutor(4) as pool:
        loops = {id(loop) for loop in pool.map(lambda _: run_async(_loop()), range(4))}
    assert loops == {id(run_async(_loop()))}
    assert stop_background_loop(60)
    assert run_async(_loop()).is_running(), "a later call starts a new loop"


async def _fail() -> None:
    raise LookupError("what the work raised")


def test_a_blocking_call_raises_the_error_of_its_coroutine() -> None:
    with pytest.raises(LookupError, match="what the work raised"):
        run_async(_fail())


async def test_a_blocking_call_inside_an_event_loop_is_refused() -> None:
    with pytest.raises(RuntimeError, match="inside a running event loop"):
        run_async(_loop())
    with pytest.raises(RuntimeError, match="inside a running event loop"):
        next(iterate_async(_numbers))


closed: list[bool] = []


async def _numbers() -> AsyncIterator[int]:
    try:
        for number in range(3):
            yield number
    finally:
        closed.append(True)


def test_an_abandoned_iteration_is_closed() -> None:
    closed.clear()
    assert list(iterate_async(_numbers)) == [0, 1, 2]
    parts = iterate_async(_numbers)
    assert next(parts) == 0 and closed == [True]
    parts.close()  # type: ignore[attr-defined]
    assert closed == [True, True]


def test_each_loop_has_its_own_value() -> None:
    values: LoopLocal[list[int]] = LoopLocal(list)

    async def take() -> tuple[int, int]:
        return id(values.get()), id(values.get())

    here, there = asyncio.run(take()), run_async(take())
    assert here[0] == here[1] and there[0] == there[1]


async def test_a_cancelled_waiter_does_not_cancel_the_event_for_others() -> None:
    event = ThreadSafeEvent()
    one, other = asyncio.ensure_future(event.wait()), asyncio.ensure_future(event.wait())
    while event.waiters < 2:
        await asyncio.sleep(0)
    one.cancel()
    threading.Thread(target=event.set).start()
    await other
    await event.wait()
    assert one.cancelled()
