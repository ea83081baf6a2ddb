"""A command that kills itself at its n-th write, so that a test can cover every write of a run.

    python interrupted_section.py WRITES NUMBER SIDE ARGUMENT...     SIDE is "before" or "after" the write

WRITES lists, comma-separated, what is counted: `answer` (a journal commit of answers), `checkpoint`, `step` (the output
of one of several nodes, before their checkpoint), `register` (the start or end of a run), `file` (the rename that puts
a complete file in place). The arguments are those of `cli.py`. A run with fewer writes ends normally and reports their
number on stderr: "writes: N".
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from citeloom.cli import main
from citeloom.models.journal.journal_database import JournalFile
from citeloom.stores.run_register import RunRegister

ON_POSTGRES = os.environ.get("CITELOOM_HOME", "").startswith("postgresql:")
if ON_POSTGRES:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as Saver

    from citeloom.stores.postgres.postgres_journal import LibraryJournalDatabase
else:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver as Saver  # type: ignore[assignment]


class Count:
    """Counts writes, and kills this process at the requested one."""

    def __init__(self, number: int, side: str) -> None:
        self.written = 0
        self.turn = asyncio.Lock()
        self._number = number
        self._side = side
        self._lock = threading.Lock()

    def before(self) -> int:
        """The number of a write that is about to happen."""
        with self._lock:
            self.written += 1
            number = self.written
        self._strike("before", number)
        return number

    def after(self, number: int) -> None:
        self._strike("after", number)

    def _strike(self, side: str, number: int) -> None:
        if (side, number) == (self._side, self._number):
            os.kill(os.getpid(), signal.SIGKILL)


class _KillingConnection:
    """The journal's connection, with its commits of new answers counted."""

    def __init__(self, db: Any, count: Count) -> None:
        self._db = db
        self._count = count
        self._kept = self._newest()

    def _newest(self) -> int:
        return int(self._db.execute("SELECT coalesce(max(id), 0) FROM answers").fetchone()[0])

    def commit(self) -> None:
        newest = self._newest()
        if newest == self._kept:
            self._db.commit()
            return
        self._kept = newest
        number = self._count.before()
        self._db.commit()
        self._count.after(number)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def count_answers(count: Count) -> None:
    for database in (JournalFile, *([LibraryJournalDatabase] if ON_POSTGRES else [])):
        connect = database.connect

        def counted(place: Any, connect: Any = connect) -> Any:
            return _KillingConnection(connect(place), count)

        database.connect = counted  # type: ignore[method-assign]


def count_awaited(count: Count, owner: Any, name: str) -> None:
    """Count the calls of an async method, one at a time: before the n-th, all earlier ones are on disk."""
    write = getattr(owner, name)

    async def counted(*arguments: Any, **named: Any) -> Any:
        async with count.turn:
            number = count.before()
            result = await write(*arguments, **named)
            count.after(number)
        return result

    setattr(owner, name, counted)


def count_called(count: Count, owner: Any, name: str) -> None:
    """Count the calls of a method."""
    write = getattr(owner, name)

    def counted(*arguments: Any, **named: Any) -> Any:
        number = count.before()
        result = write(*arguments, **named)
        count.after(number)
        return result

    setattr(owner, name, counted)


def interrupt(writes: list[str], count: Count) -> None:
    """Count these writes."""
    for kind in writes:
        match kind:
            case "answer":
                count_answers(count)
            case "checkpoint":
                count_awaited(count, Saver, "aput")
            case "step":
                count_awaited(count, Saver, "aput_writes")
            case "register":
                count_called(count, RunRegister, "begin")
                count_called(count, RunRegister, "mark")
            case "file":
                count_called(count, Path, "replace")
            case _:
                raise SystemExit(f"no such write: {kind}")


if __name__ == "__main__":
    counting = Count(int(sys.argv[2]), sys.argv[3])
    interrupt(sys.argv[1].split(","), counting)
    sys.argv = ["cli.py", *sys.argv[4:]]
    try:
        main()
    finally:
        sys.stderr.write(f"writes: {counting.written}\n")
