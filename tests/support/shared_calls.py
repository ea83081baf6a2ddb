"""One of several workers that need the same answers: `python -m tests.support.shared_calls HOME SEED CALLS OUT [MOST]`.

Every answer that is paid for is a line of the file OUT, outside the journal. All workers together may make MOST calls.
Prints "ready", and begins with a line on stdin. A call that the loss of the database pauses is resumed. Exits with 3
when the budget is reached.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import TextIO

from citeloom.models.journal.budget import Budget, BudgetLimits, BudgetReachedError
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import CachedAnswer, CallRecord, CallResult, Reservation, RunScope
from citeloom.settings.addresses import DatabaseUrl, parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.postgres.database import ConnectionLostError
from tests.support.journal_calls import once

CONCURRENCY = 20
WORKERS = 4


class Worker:
    """Takes answers for a run of its own, within the budget of the runs of all workers."""

    def __init__(self, journal: Journal, seed: int, out: TextIO, most: int | None) -> None:
        self._journal = journal
        self._run = f"run-{seed}"
        self._out = out
        self._budget = Budget(BudgetLimits(calls=most), {}, journal, *(f"run-{each}" for each in range(WORKERS)))

    async def take(self, keys: list[str]) -> bool:
        """Take every answer once, twenty at a time; returns whether the budget sufficed."""
        sequences = (self._sequence(keys[place::CONCURRENCY]) for place in range(CONCURRENCY))
        return all(await asyncio.gather(*sequences))

    async def _sequence(self, keys: list[str]) -> bool:
        try:
            for key in keys:
                answer = await self._answered(key)
                assert answer.payload == f"answer to {key}"
        except BudgetReachedError:
            return False
        return True

    async def _answered(self, key: str) -> CachedAnswer:
        while True:
            try:
                return await self._once(key)
            except ConnectionLostError as error:
                sys.stderr.write(f"{error}\n")

    async def _once(self, key: str) -> CachedAnswer:
        record = CallRecord(key, "chat", "http://host/v1", "m")
        held: Reservation | None = None

        async def pay() -> CallResult:
            nonlocal held
            async with self._budget.reserve(Reservation(self._run, record, 1, 10, 5)) as hold:
                self._out.write(f"{key}\n")
                await asyncio.sleep(0)
            held = hold
            return CallResult(f"answer to {key}", 10, 5, hold)

        try:
            return await once(self._journal, record, RunScope(self._run), pay)
        finally:
            if held is not None:
                self._budget.finish(held, (10, 5))


def main(address: str, seed: int, calls: int, out: Path, most: int | None) -> bool:
    home = find_home(parse_home(address))
    assert isinstance(home.address, DatabaseUrl)
    keys = [f"call-{number}" for number in range(calls)]
    random.Random(seed).shuffle(keys)
    with home.open_journal() as journal, out.open("a", buffering=1) as paid:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        return asyncio.run(Worker(journal, seed, paid, most).take(keys))


if __name__ == "__main__":
    _, ADDRESS, SEED, CALLS, OUT, *MOST = sys.argv
    sys.exit(0 if main(ADDRESS, int(SEED), int(CALLS), Path(OUT), int(MOST[0]) if MOST else None) else 3)
