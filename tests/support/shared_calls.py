"""One of several workers that need the same answers: `python -m tests.support.shared_calls HOME SEED CALLS`.

Every answer that is paid for is counted in the table `paid`, outside the journal's transactions. Prints "ready", and
begins with a line on stdin.
"""

from __future__ import annotations

import asyncio
import random
import sys

import psycopg

from citeloom.database_url import DatabaseUrl, home_of
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import CallRecord, CallResult, RunScope
from citeloom.stores.backends import backend_of
from citeloom.stores.home import find_home
from tests.support.journal_calls import once

CONCURRENCY = 20


async def work(journal: Journal, address: str, seed: int, calls: int) -> None:
    """Take every answer once, in an order of its own, twenty at a time."""
    keys = [f"call-{number}" for number in range(calls)]
    random.Random(seed).shuffle(keys)
    paying = await psycopg.AsyncConnection.connect(address, autocommit=True)
    one_at_a_time = asyncio.Lock()

    async def answered(key: str) -> None:
        async def pay() -> CallResult:
            async with one_at_a_time:
                await paying.execute("INSERT INTO paid VALUES (%s, %s)", (key, seed))
            return CallResult(f"answer to {key}", 10, 5)

        record = CallRecord(key, "chat", "http://host/v1", "m")
        answer = await once(journal, record, RunScope(f"run-{seed}"), pay)
        assert answer.payload == f"answer to {key}"

    async def sequence(own: list[str]) -> None:
        for key in own:
            await answered(key)

    await asyncio.gather(*(sequence(keys[place::CONCURRENCY]) for place in range(CONCURRENCY)))
    await paying.close()


def main(address: str, seed: int, calls: int) -> None:
    home = find_home(home_of(address))
    assert isinstance(home.address, DatabaseUrl)
    with backend_of(home).open_journal() as journal:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        asyncio.run(work(journal, address, seed, calls))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
