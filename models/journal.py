"""The journal: no answered model call is ever paid twice.

Every answer is committed to disk before it is handed out. In order: join an equal call in flight, look up,
call, commit, hand out. The promise is exact: no committed answer is paid for again; at most the calls in
flight at a kill are.

A run sees the same answers whenever it is taken up again: what it was once handed stays its answer, even one
that failed validation, so that it walks the same way to the same section. Later runs never see an answer that
was rejected.

All SQLite work is done by one thread that commits whatever has gathered since the last commit, so that the
event loop never waits for the disk and twenty answers together cost one sync or two.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, Self, TypeVar

from citeloom.errors import InputError, PausedError
from citeloom.models.clock import Clock, SystemClock
from citeloom.models.group_commit import ClosedError, GroupCommit
from citeloom.models.records import CallKind, CallRecord, Outcome, Replay, RunScope, Usage

__all__ = [
    "CallKind",
    "CallRecord",
    "Journal",
    "JournalError",
    "JournalPausedError",
    "Outcome",
    "Replay",
    "RunScope",
    "Usage",
]

T = TypeVar("T")

SCHEMA_VERSION: Final = 1
LOCK_PATIENCE: Final = 30.0  # seconds to wait for another process that writes
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS answers (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    made_at REAL NOT NULL,
    rejected INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    payload TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS answers_by_key ON answers (key, id);
CREATE TABLE IF NOT EXISTS uses (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    key TEXT NOT NULL,
    answer INTEGER NOT NULL REFERENCES answers (id),
    paid INTEGER NOT NULL,
    used_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS uses_by_run ON uses (run, key, id);
"""
# What the run was handed before comes first; then the newest answer that nobody rejected.
_OWN: Final = (
    "SELECT a.id, a.payload FROM uses u JOIN answers a ON a.id = u.answer"
    " WHERE u.run = ? AND u.key = ? AND a.made_at >= ? ORDER BY u.id LIMIT 1"
)
_ANY: Final = "SELECT id, payload FROM answers WHERE key = ? AND rejected = 0 AND made_at >= ? ORDER BY id DESC LIMIT 1"


class JournalError(InputError):
    """The journal cannot be opened."""


class JournalPausedError(PausedError):
    """An answer could not be committed; what was committed before is kept."""


class Journal:
    """The journal of one home; may be shared by tasks, threads and event loops, and the file by processes."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path = path
        self._clock = clock or SystemClock()
        try:
            self._writer = GroupCommit(lambda: _connect(path), name="journal")
        except (sqlite3.Error, OSError) as error:
            raise JournalError(f"{path}: {error}.", help=_remedy(error)) from error
        self._flights: dict[str, _Flight] = {}
        self._guard = threading.Lock()

    @classmethod
    def open(cls, path: Path, *, clock: Clock | None = None) -> Self:
        """The journal at `path`, made when it is not there; raises `JournalError` naming the file."""
        return cls(path, clock)

    def close(self) -> None:
        """Commit what is left and close the file."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def once(self, record: CallRecord, scope: RunScope, call: Callable[[], Awaitable[Outcome]]) -> Replay:
        """The answer to `record`: from the journal, from an equal call in flight, or by `call`.

        Raises what `call` raises, and `JournalPausedError` when an answer cannot be committed.
        """

        async def only(_: Sequence[int]) -> list[Outcome]:
            return [await call()]

        return (await self.once_each([record], scope, only))[0]

    async def once_each(
        self,
        records: Sequence[CallRecord],
        scope: RunScope,
        call: Callable[[Sequence[int]], Awaitable[Sequence[Outcome]]],
    ) -> list[Replay]:
        """`once` for several records that one request can answer.

        `call` is given the positions of the records without an answer and returns theirs in that order; equal
        records are asked for once.
        """
        first: dict[str, int] = {}
        for position, record in enumerate(records):
            first.setdefault(record.key, position)
        claimed: list[str] = []
        try:
            # In the order of keys, so that two overlapping batches never wait for each other.
            for key in sorted(first):
                await self._claim(key)
                claimed.append(key)
            found = await self._submit(lambda db: [self._find(db, key, scope) for key in first])
            answers = {key: Replay(text, False) for key, text in zip(first, found, strict=True) if text is not None}
            missing = [first[key] for key in first if key not in answers]
            if missing:
                outcomes = list(await call(missing))
                wanted = [records[position] for position in missing]
                await self._submit(lambda db: self._keep(db, wanted, outcomes, scope))
                for record, outcome in zip(wanted, outcomes, strict=True):
                    answers[record.key] = Replay(outcome.payload, True)
        finally:
            for key in claimed:
                self._release(key)
        return [answers[record.key] for record in records]

    async def reject(self, key: str, scope: RunScope) -> None:
        """Keep the answer that this run was handed for `key`, but replay it in no later run."""

        def mark(db: sqlite3.Connection) -> None:
            found = db.execute(_OWN, (scope.run_id, key, scope.since)).fetchone()
            if found is not None:
                db.execute("UPDATE answers SET rejected = 1 WHERE id = ?", (found[0],))

        await self._submit(mark)

    async def usage(self, scope: RunScope) -> Usage:
        """What the run cost so far, counted durably."""

        def count(db: sqlite3.Connection) -> Usage:
            row = db.execute(
                "SELECT coalesce(sum(u.paid AND a.kind = 'chat'), 0),"
                " coalesce(sum(NOT u.paid AND a.kind = 'chat'), 0),"
                " coalesce(sum(u.paid * a.input_tokens), 0), coalesce(sum(u.paid * a.output_tokens), 0),"
                " coalesce(sum(u.paid AND a.kind = 'embedding'), 0)"
                " FROM uses u JOIN answers a ON a.id = u.answer WHERE u.run = ? AND a.made_at >= ?",
                (scope.run_id, scope.since),
            ).fetchone()
            return Usage(*row)

        return await self._submit(count)

    async def forget(self, run_id: str) -> None:
        """Drop what the run was handed, for a run that is deleted; its answers stay for others."""
        await self._submit(lambda db: db.execute("DELETE FROM uses WHERE run = ?", (run_id,)).rowcount)

    def _find(self, db: sqlite3.Connection, key: str, scope: RunScope) -> str | None:
        row = db.execute(_OWN, (scope.run_id, key, scope.since)).fetchone()
        row = row or db.execute(_ANY, (key, scope.since)).fetchone()
        if row is None:
            return None
        self._note_use(db, key, int(row[0]), scope, paid=False)
        return str(row[1])

    def _keep(
        self,
        db: sqlite3.Connection,
        records: Sequence[CallRecord],
        outcomes: Sequence[Outcome],
        scope: RunScope,
    ) -> None:
        for record, outcome in zip(records, outcomes, strict=True):
            answer = db.execute(
                "INSERT INTO answers"
                " (key, kind, endpoint, model, made_at, input_tokens, output_tokens, payload)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    record.key,
                    record.kind,
                    record.endpoint,
                    record.model,
                    self._clock.time(),
                    outcome.input_tokens,
                    outcome.output_tokens,
                    outcome.payload,
                ),
            ).lastrowid
            assert answer is not None
            self._note_use(db, record.key, answer, scope, paid=True)

    def _note_use(self, db: sqlite3.Connection, key: str, answer: int, scope: RunScope, *, paid: bool) -> None:
        db.execute(
            "INSERT INTO uses (run, key, answer, paid, used_at) VALUES (?, ?, ?, ?, ?)",
            (scope.run_id, key, answer, paid, self._clock.time()),
        )

    async def _submit(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await self._writer.submit(work)
        except (sqlite3.Error, OSError) as error:
            raise JournalPausedError(f"{self.path}: {error}.", help=_remedy(error)) from error
        except ClosedError:
            raise JournalPausedError(f"{self.path}: the journal was closed while a call was under way.") from None

    async def _claim(self, key: str) -> None:
        """Become the one who may ask for `key`. Waits for an equal call in flight; whoever comes next then
        finds its answer in the journal, or makes the call when the other was cancelled or failed."""
        while True:
            with self._guard:
                flight = self._flights.get(key)
                if flight is None:
                    self._flights[key] = _Flight()
                    return
                landing = flight.join()
            await landing

    def _release(self, key: str) -> None:
        with self._guard:
            self._flights.pop(key).land()


class _Flight:
    """A call under way, and those who wait for it, each in its own event loop."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def join(self) -> asyncio.Future[None]:
        landing = asyncio.get_running_loop().create_future()
        self._waiting.append(landing)
        return landing

    def land(self) -> None:
        for landing in self._waiting:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                landing.get_loop().call_soon_threadsafe(_settle, landing)


def _settle(landing: asyncio.Future[None]) -> None:
    if not landing.done():
        landing.set_result(None)


def _connect(path: Path) -> sqlite3.Connection:
    """A connection whose commits are on disk when they return; raises sqlite3.Error, OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, timeout=LOCK_PATIENCE, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        with closing(db.execute("PRAGMA user_version")) as cursor:
            version = int(cursor.fetchone()[0])
        if version > SCHEMA_VERSION:
            raise sqlite3.DatabaseError(f"made by a newer Citeloom (journal version {version})")
        db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
    except BaseException:
        db.close()
        raise
    return db


def _remedy(error: Exception) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if "newer" in str(error):
        return "Use the Citeloom that made it, or another --home."
    if name in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
        return "Move the file away: a new journal is begun, and calls made so far may be paid again."
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "Another process holds it: wait for that one to end, then give the same command again."
    if name.startswith("SQLITE_FULL"):
        return "Make room on the disk, then give the same command again."
    return "Check that the folder can be written, or choose another with --home."
