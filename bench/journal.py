"""The cost of a call in the journal: lookup, reservation in a budget, commit to disk, delivery.

Three ways to call: twenty concurrent calls in one event loop, as in a search; sequential calls, where no sync is
shared; and four processes of 32 threads each, all on one file. The reference is the goal.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from pathlib import Path

from bench.measure import Row, row_of
from citeloom.models.journal.journal import Journal
from tests.support.journal_load import crowd, write

GOAL = 0.002  # seconds per call
AT_ONCE = 20
CALLS = 25
PROCESSES, THREADS, CALLS_OF_THREAD = 4, 32, 40
_number = itertools.count()


async def measure(rounds: int) -> list[Row]:
    """A row for each way to call; the time per call is compared with the goal."""
    with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as folder:
        with Journal(Path(folder) / "journal.sqlite") as journal:
            together = [await _seconds(journal, AT_ONCE) for _ in range(rounds)]
            alone = [await _seconds(journal, 1) for _ in range(rounds)]
        crowd = [await asyncio.to_thread(_crowd, Path(folder) / f"crowd-{number}.sqlite") for number in range(rounds)]
    ways = (
        ("a call in the journal, 20 at once : goal of 2 ms", together),
        ("a call in the journal, one after the other : goal of 2 ms", alone),
        (f"a call in the journal, {PROCESSES} processes x {THREADS} threads : goal of 2 ms", crowd),
    )
    return [row_of(what, [(seconds, GOAL) for seconds in times], target=1.0) for what, times in ways]


async def _seconds(journal: Journal, at_once: int) -> float:
    """Seconds per call, for `at_once` tasks that each make sequential calls."""
    name = f"run-{next(_number)}"
    began = time.perf_counter()
    await asyncio.gather(*(write(journal, name, task, CALLS) for task in range(at_once)))
    return (time.perf_counter() - began) / (at_once * CALLS)


def _crowd(path: Path) -> float:
    """Seconds per call over all processes, from the first start to the last end."""
    reports = crowd(path, PROCESSES, THREADS, CALLS_OF_THREAD)
    assert not any(process["errors"] for process in reports), reports
    seconds = max(process["ended"] for process in reports) - min(process["began"] for process in reports)
    return float(seconds) / (PROCESSES * THREADS * CALLS_OF_THREAD)
