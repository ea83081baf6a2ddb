"""One of each thing in a process."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from citeloom.models.concurrency import thread_safe_cache


def test_threads_that_ask_at_once_get_the_same() -> None:
    """The maker waits until all eight threads have asked, which a maker for each of them would need."""
    asked = threading.Barrier(8)
    made: list[object] = []

    @thread_safe_cache
    def make(_: str) -> object:
        made.append(object())
        return made[-1]

    def ask() -> object:
        asked.wait(timeout=60)
        return make("one")

    with ThreadPoolExecutor(8) as pool:
        got = [future.result() for future in [pool.submit(ask) for _ in range(8)]]
    assert len(made) == 1
    assert {id(thing) for thing in got} == {id(made[0])}
    assert make("two") is not made[0]
