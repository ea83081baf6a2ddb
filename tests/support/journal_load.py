"""A process that writes to a journal as fast as it can.

`python -m tests.support.journal_load JOURNAL NAME THREADS CALLS`

Every thread has its own event loop and makes its calls sequentially, like searches of a busy server; the threads share
the journal, and the processes share its file. Prints "ready", waits for a line on stdin so that all processes start
together, then prints start time, end time and errors as JSON.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from citeloom.models.journal.budget import Budget, BudgetLimits
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import CallRecord, CallResult, Reservation, RunScope
from citeloom.settings.config import Price
from tests.support.cli_process import ROOT
from tests.support.journal_calls import once

PAYLOAD = json.dumps({"content": "a reading of some length " * 12})


async def write(journal: Journal, name: str, thread: int, calls: int) -> None:
    """The calls of one thread, each reserved, answered, committed, and looked up again."""
    scope = RunScope(name)
    budget = Budget(BudgetLimits(tokens=10**12), {"m": Price(input=1.0)}, journal, name)
    for number in range(calls):
        record = CallRecord(f"{name}-{thread}-{number}", "chat", "http://host/v1", "m")
        hold = Reservation(name, record, 1, 1000, 500)

        async def answer(hold: Reservation = hold) -> CallResult:
            async with budget.reserve(hold):
                return CallResult(PAYLOAD, 100, 40, hold)

        replay = await once(journal, record, scope, answer)
        budget.finish(hold, (100, 40))
        assert replay.paid


def crowd(path: Path, processes: int, threads: int, calls: int) -> list[dict[str, Any]]:
    """The reports of this many processes, which all wrote to `path` at once."""
    script = [sys.executable, "-m", "tests.support.journal_load", str(path)]
    started = [
        subprocess.Popen(
            [*script, f"p{number}", str(threads), str(calls)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for number in range(processes)
    ]
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [json.loads(process.communicate()[0]) for process in started]


def main() -> None:
    path, name, threads, calls = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    errors: list[str] = []

    def work(thread: int) -> None:
        try:
            asyncio.run(write(journal, name, thread, calls))
        except Exception as error:  # noqa: BLE001 - reported to the parent process
            errors.append(repr(error))

    print("ready", flush=True)  # noqa: T201
    sys.stdin.readline()
    with Journal(path) as journal:
        began = time.time()
        workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        ended = time.time()
    print(json.dumps({"began": began, "ended": ended, "errors": errors}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
