"""The journal: a persistent cache of model calls, so that no answered call is ever paid for twice.

After a kill, only calls in flight may be paid for again. A resumed run sees the same answers, even those that failed
validation; later runs never see a rejected one. An unreadable answer counts as absent. See docs/decisions/journal.md.

One thread owns the connection and commits queued work in batches, since a sync takes as long for twenty answers as for
one. If one piece of a batch fails, each piece is retried alone.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from ...errors import InputError, PausedError
from ...sqlite import DamagedFileError
from ...table_columns import WrongValueError
from ..http.limiter import Clock
from .journal_database import (
    ANSWERS,
    BEGINNINGS,
    DAMAGED_REMEDY,
    JournalConnection,
    JournalDatabase,
    JournalFile,
    add_spending,
    load_spending,
    load_spending_by_day,
    reserve,
)
from .records import CachedAnswer, CallKind, CallRecord, CallResult, RunScope, Spending, Usage
from .single_flight import SingleFlight
from .streaming import Streams

T = TypeVar("T")
_Job = tuple[Callable[[JournalConnection], Any], Future[Any]]  # work and the future of its result


class ClosedError(Exception):
    """Work was submitted after `close`."""


class GroupCommit:
    """Runs work on one connection, in order of submission, several pieces per transaction."""

    def __init__(
        self,
        connect: Callable[[], JournalConnection],  # in the thread that will use it; its errors are raised here
        name: str,  # of the thread
        begin: str = "BEGIN IMMEDIATE",  # opens a transaction
        passing: tuple[type[Exception], ...] = (),  # transient, such as a lost connection: retried once
    ) -> None:
        self._begin = begin
        self._passing = passing
        self._work: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        opened: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, args=(connect, opened), name=name, daemon=True)
        self._thread.start()
        problem = opened.get()
        if problem is not None:
            self._thread.join()
            raise problem

    async def submit(self, work: Callable[[JournalConnection], T]) -> T:
        """The result of `work`, once it is committed to disk.

        `work` is carried out even if the caller is cancelled, so that no answer is lost. It must not return a cursor:
        releasing it in the caller's thread would reset a statement in use here. Raises `ClosedError`.
        """
        result: Future[T] = Future()
        result.set_running_or_notify_cancel()  # cannot be cancelled any more
        with self._closing:
            if self._closed:
                raise ClosedError
            self._work.put((work, result))
        return await asyncio.wrap_future(result)

    def close(self) -> None:
        """Finish submitted work, then close the connection; may be called twice."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._work.put(None)
        self._thread.join()

    def _serve(self, connect: Callable[[], JournalConnection], opened: queue.SimpleQueue[Exception | None]) -> None:
        try:
            connection = connect()
        except Exception as error:  # noqa: BLE001 - re-raised by the constructor, in the caller's thread
            opened.put(error)
            return
        opened.put(None)
        try:
            while (job := self._work.get()) is not None:
                batch = [job]
                while not self._work.empty() and (job := self._work.get()) is not None:
                    batch.append(job)
                self._run(connection, batch)
                if job is None:
                    break
        finally:
            connection.close()

    def _run(self, connection: JournalConnection, batch: Sequence[_Job], *, again: bool = True) -> None:
        begun = False
        try:
            connection.execute(self._begin)
            begun = True
            results = [work(connection) for work, _ in batch]
            connection.commit()
        except Exception as error:  # noqa: BLE001 - delivered to its caller
            if begun:
                connection.rollback()
            if again and isinstance(error, self._passing):
                self._run(connection, batch, again=False)
            elif begun and len(batch) > 1:
                for job in batch:
                    self._run(connection, [job])
            else:
                for _, result in batch:
                    result.set_exception(error)
        else:
            for (_, result), value in zip(batch, results, strict=True):
                result.set_result(value)


# First the answer that the run received before, then the newest one that was not rejected, in one statement to save a
# round trip to the database. Answers are ordered by id, since a clock may go back.
_OWN: Final = (
    "SELECT a.id, a.payload FROM uses u JOIN answers a ON a.id = u.answer"
    " WHERE u.run = ? AND u.key = ? ORDER BY u.id LIMIT 1"
)
_ANY: Final = "SELECT id, payload FROM answers WHERE key = ? AND rejected = 0 AND id > ? ORDER BY id DESC LIMIT 1"
_FIND: Final = f"SELECT id, payload, 1 AS own FROM ({_OWN}) AS o UNION ALL SELECT id, payload, 0 FROM ({_ANY}) AS n"
_INSERT: Final = ANSWERS.insert(columns=ANSWERS.stored[1:])  # its id is assigned by the database


class JournalError(InputError):
    """The journal cannot be opened."""


class JournalPausedError(PausedError):
    """An answer could not be committed; everything committed before is kept."""


class Journal:
    """The journal of a home, created if missing; shared by threads and processes. Raises `JournalError`."""

    def __init__(self, place: Path | JournalDatabase, clock: Clock | None = None) -> None:
        self._database: JournalDatabase = JournalFile(place) if isinstance(place, Path) else place
        self._clock = clock or Clock()
        database = self._database
        try:
            self._writer = GroupCommit(database.connect, "journal", database.begin, database.passing)
        except database.errors as error:
            raise JournalError(f"{database.name}: {error}.", help=database.remedy(error)) from error
        self._flights = SingleFlight.shared(database.place, database.call_locks)
        self.is_open = True
        self.streams = Streams()
        self._counting = threading.Lock()
        self._since_opened: dict[tuple[CallKind, str, str], Spending] = {}

    def close(self) -> None:
        """Commit pending work and close the file; may be called twice."""
        self._writer.close()
        if self.is_open:
            self.is_open = False
            self._flights.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def get_or_call(
        self,
        records: Sequence[CallRecord],
        scope: RunScope,
        call: Callable[[Sequence[int]], Awaitable[Sequence[CallResult]]],
    ) -> list[CachedAnswer]:
        """The answers to a request's records: from the journal, from identical calls in flight, or by `call`.

        `call` receives the positions of the records without an answer and returns the results in that order; identical
        records are requested once. Raises what `call` raises, and `JournalPausedError` if an answer cannot be
        committed.
        """
        first: dict[str, int] = {}
        for position, record in enumerate(records):
            first.setdefault(record.key, position)
        once = [records[position] for position in first.values()]
        async with self._flights.claim(first):
            found = await self.submit(lambda db: [self._find(db, record, scope) for record in once])
            answers = {
                key: CachedAnswer(text, False) for key, text in zip(first, found, strict=True) if text is not None
            }
            for record in once:
                if record.key in answers:
                    self._note(record, None)
            missing = [first[key] for key in first if key not in answers]
            if missing:
                outcomes = list(await call(missing))
                wanted = [records[position] for position in missing]
                await self.submit(lambda db: self._keep(db, wanted, outcomes, scope))
                for record, outcome in zip(wanted, outcomes, strict=True):
                    answers[record.key] = CachedAnswer(outcome.payload, True)
                    self._note(record, outcome)
        return [answers[record.key] for record in records]

    async def recall(self, keys: Sequence[str], scope: RunScope) -> dict[str, str]:
        """The values remembered under these keys; a fresh run sees only values remembered after its own start."""

        def read(db: JournalConnection) -> dict[str, str]:
            after = _beginning(db, scope.run_id) if scope.fresh else 0
            rows = {key: db.execute(_ANY, (key, after)).fetchone() for key in dict.fromkeys(keys)}
            return {key: str(row[1]) for key, row in rows.items() if row is not None}

        return await self.submit(read) if keys else {}

    async def remember(self, derived: Mapping[str, str], model: str) -> None:
        """Commit values derived from a model's answers, such as verdicts; they cost nothing and are not calls."""
        rows = [(key, "verdict", "", model, self._clock.time(), 0, 0, 0, payload) for key, payload in derived.items()]

        def insert(db: JournalConnection) -> None:
            db.executemany(_INSERT, rows)

        await self.submit(insert)

    async def reject(self, key: str, scope: RunScope) -> None:
        """Keep this run's answer for `key`, but do not replay it in later runs."""

        def mark(db: JournalConnection) -> None:
            found = db.execute(_OWN, (scope.run_id, key)).fetchone()
            if found is not None:
                db.execute("UPDATE answers SET rejected = 1 WHERE id = ?", (found[0],))

        await self.submit(mark)

    async def discard(self, keys: Sequence[str], scope: RunScope) -> None:
        """Treat this run's answers for `keys` as absent for all runs, since they cannot be read."""

        def drop(db: JournalConnection) -> None:
            for key in keys:
                for answer, _ in db.execute(_OWN, (scope.run_id, key)).fetchall():
                    db.execute("DELETE FROM uses WHERE answer = ?", (answer,))
                    db.execute("UPDATE answers SET rejected = 1 WHERE id = ?", (answer,))

        await self.submit(drop)

    async def usage(self, scope: RunScope) -> Usage:
        """The persistent usage of the run so far, without prices."""
        return Usage.of(await self.spending([scope.run_id]))

    async def spending(self, runs: Sequence[str] | None = None) -> list[Spending]:
        """The spending of runs so far, by model; of all runs if none are named."""
        return await self.submit(lambda db: load_spending(db, runs))

    async def spending_by_day(self, runs: Sequence[str] | None = None) -> list[tuple[str, Spending]]:
        """The spending of each day by model, for answers and runs that are still stored."""
        return await self.submit(lambda db: load_spending_by_day(db, runs))

    def since_opened(self) -> list[Spending]:
        """Calls paid and reused through this journal since it was opened; never blocks."""
        with self._counting:
            return list(self._since_opened.values())

    def _note(self, record: CallRecord, paid: CallResult | None) -> None:
        place = (record.kind, record.endpoint, record.model)
        read, written = (paid.input_tokens, paid.output_tokens) if paid else (0, 0)
        with self._counting:
            known = self._since_opened.get(place) or Spending("", *place)
            counts = (known.paid + bool(paid), known.reused + (not paid))
            self._since_opened[place] = Spending(
                "", *place, *counts, known.input_tokens + read, known.output_tokens + written
            )

    async def forget(self, run_id: str, *, spending: bool = True) -> None:
        """Delete a deleted run's use of answers, and its `spending`; the answers stay for other runs."""

        def drop(db: JournalConnection) -> None:
            for table in ("uses", "beginnings", "contexts", *(["spending"] if spending else [])):
                db.execute(f"DELETE FROM {table} WHERE run = ?", (run_id,))

        await self.submit(drop)

    async def submit(self, work: Callable[[JournalConnection], T]) -> T:
        """Run `work` in a transaction and return its result once committed; raises `JournalPausedError`."""
        try:
            return await self._writer.submit(work)
        except self._database.errors as error:
            raise JournalPausedError(f"{self._database.name}: {error}.", help=self._database.remedy(error)) from error
        except WrongValueError as error:
            raise DamagedFileError(f"{self._database.name}: {error}", help=DAMAGED_REMEDY) from None
        except ClosedError:
            message = f"{self._database.name}: the journal was closed while a call was in progress."
            raise JournalPausedError(message) from None

    def _find(self, db: JournalConnection, record: CallRecord, scope: RunScope) -> str | None:
        after = _beginning(db, scope.run_id) if scope.fresh else 0
        found = db.execute(_FIND, (scope.run_id, record.key, record.key, after)).fetchall()
        if not found:
            return None
        answer, payload, own = max(found, key=lambda row: row[2])
        if not own:
            self._note_use(db, record.key, int(answer), scope, paid=False)
        add_spending(db, scope.run_id, record, reused=1)
        return str(payload)

    def _keep(
        self, db: JournalConnection, records: Sequence[CallRecord], outcomes: Sequence[CallResult], scope: RunScope
    ) -> None:
        for record, outcome in zip(records, outcomes, strict=True):
            tokens = {"input_tokens": outcome.input_tokens, "output_tokens": outcome.output_tokens}
            made = (record.key, record.kind, record.endpoint, record.model, self._clock.time())
            row = (*made, 0, *tokens.values(), outcome.payload)
            answer = db.execute(f"{_INSERT} RETURNING id", row).fetchone()[0]
            self._note_use(db, record.key, answer, scope, paid=True)
            add_spending(db, scope.run_id, record, paid=1, **tokens)
            if outcome.reservation is not None:
                reserve(db, outcome.reservation, -1)

    def _note_use(self, db: JournalConnection, key: str, answer: int, scope: RunScope, *, paid: bool) -> None:
        row = (scope.run_id, key, answer, int(paid), self._clock.time())
        db.execute("INSERT INTO uses (run, key, answer, paid, used_at) VALUES (?, ?, ?, ?, ?)", row)


def _beginning(db: JournalConnection, run: str) -> int:
    """The id of the newest answer at the first look-up of a fresh run."""
    found = BEGINNINGS.read(db.execute("SELECT run, after FROM beginnings WHERE run = ?", (run,)))
    if not found:
        newest = "SELECT ?, coalesce(max(id), 0) FROM answers"
        found = BEGINNINGS.read(
            db.execute(f"INSERT INTO beginnings (run, after) {newest} RETURNING run, after", (run,))
        )
    return int(found[0][1])


_DAY: Final = 86_400.0
# A temporary table of ids, so that any number of them can be queried several times.
_CHOOSE: Final = """
CREATE TEMP TABLE chosen AS SELECT id, length(payload) AS size, CASE WHEN EXISTS (
    SELECT 1 FROM uses u JOIN kept_runs k ON k.run = u.run WHERE u.answer = answers.id
) THEN 1 ELSE 0 END AS needed FROM answers
"""


_OF_MODEL: Final = ("kind", "model", "endpoint", "answers", "payload_bytes")


def survey(database: JournalDatabase) -> dict[str, Any]:
    """Statistics of the whole journal, and of each model; times are seconds since the epoch. Raises `JournalError`."""
    with _open(database) as db:
        answers = "SELECT id, kind, model, endpoint, made_at, rejected FROM answers"
        ANSWERS.read(db.execute(answers))  # sums would count invalid values as 0
        load_spending(db)
        models = db.execute(
            "SELECT kind, model, endpoint, count(*), coalesce(sum(length(payload)), 0) FROM answers GROUP BY 1, 2, 3"
            " ORDER BY 4 DESC, 1, 2, 3"
        ).fetchall()
        rejected, oldest, newest = db.execute(
            "SELECT coalesce(sum(rejected), 0), min(made_at), max(made_at) FROM answers"
        ).fetchone()
        made, reused = db.execute("SELECT coalesce(sum(paid), 0), coalesce(sum(reused), 0) FROM spending").fetchone()
        stored = database.stored_bytes(db)
    kept = [dict(zip(_OF_MODEL, (*row[:3], *map(int, row[3:])), strict=True)) for row in models]
    counts = {"answers": sum(row["answers"] for row in kept), "rejected": int(rejected), "made": int(made)}
    counts |= {"reused": int(reused), "oldest": oldest, "newest": newest}
    return {**counts, "file_bytes": stored, "models": kept}


def prune(
    database: JournalDatabase,
    *,
    keep_of_runs: Sequence[str],
    older_than: float | None = None,
    rejected: bool = False,
    embeddings: bool = False,
    dry_run: bool = False,
    now: float | None = None,
) -> dict[str, int]:
    """Delete answers that no run in `keep_of_runs` uses, and reclaim their space; returns what was or would be deleted.

    Deletes answers `older_than` this many days and `rejected` ones; with `embeddings`, only embeddings among them.
    Raises `JournalError`, also if another process keeps the database locked.
    """
    before = -1.0
    if older_than is not None:
        before = (time.time() if now is None else now) - older_than * _DAY
    with _open(database) as db:
        db.execute(database.begin)
        db.execute("CREATE TEMP TABLE kept_runs (run TEXT PRIMARY KEY)")
        db.executemany("INSERT INTO kept_runs VALUES (?)", [(run,) for run in set(keep_of_runs)])
        only = " AND kind = 'embedding'" if embeddings else ""
        also = " OR rejected = 1" if rejected else ""
        db.execute(f"{_CHOOSE} WHERE (made_at < ?{also}){only}", (before,))
        count, size, needed = db.execute(
            "SELECT coalesce(sum(1 - needed), 0), coalesce(sum(size * (1 - needed)), 0), coalesce(sum(needed), 0)"
            " FROM chosen"
        ).fetchone()
        if dry_run:
            db.rollback()
        else:
            gone = "(SELECT id FROM chosen WHERE needed = 0)"
            db.execute(f"DELETE FROM uses WHERE answer IN {gone}")
            db.execute(f"DELETE FROM answers WHERE id IN {gone}")
            # SQLite reuses the highest ids: new answers must come after the beginning of every run.
            newest = "(SELECT coalesce(max(id), 0) FROM answers)"
            db.execute(f"UPDATE beginnings SET after = {newest} WHERE after > {newest}")
            db.commit()
            database.reclaim(db)
        pruned = {"answers": int(count), "payload_bytes": int(size), "kept_for_runs": int(needed)}
        return {**pruned, "file_bytes": database.stored_bytes(db)}


@contextmanager
def _open(database: JournalDatabase) -> Iterator[JournalConnection]:
    try:
        with closing(database.connect()) as db:
            yield db
    except WrongValueError as error:
        raise DamagedFileError(f"{database.name}: {error}", help=DAMAGED_REMEDY) from None
    except database.errors as error:
        raise JournalError(f"{database.name}: {error}.", help=database.remedy(error)) from error
