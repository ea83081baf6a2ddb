"""The interface of a journal's database, its implementation in a SQLite file, and the spending of runs by model."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, Protocol, get_args

from ...errors import OtherFormatError
from ...sqlite import TextConnection, write_ahead
from ...table_columns import FLAG, MOMENT, SQLITE, TEXT, TableConnection, TypedTable, choice, integer
from .records import CallKind, CallRecord, Reservation, Spending
from .single_flight import CallLocks, KeyLocks


class JournalConnection(TableConnection, Protocol):
    """A connection with the SQL that both engines understand."""

    def commit(self) -> None:
        """Commit; returns once the transaction is on disk."""

    def rollback(self) -> None:
        """Roll the transaction back."""

    def close(self) -> None:
        """Close the connection."""


class JournalDatabase(Protocol):
    """A journal's database; `begin` excludes all other processes, so that checking and reserving a budget is atomic."""

    name: str
    """The database as messages name it, without secrets."""
    place: Hashable
    """Equal for all journals of a process on one database: they share their call locks."""
    begin: str
    """The statement that opens a transaction."""
    errors: tuple[type[Exception], ...]
    """The exceptions raised by the database and its connection."""
    passing: tuple[type[Exception], ...]
    """The errors after which a rolled-back transaction is worth retrying on a new connection."""

    def connect(self) -> JournalConnection:
        """Open a connection, creating missing tables; raises one of `errors`."""

    def call_locks(self) -> CallLocks:
        """The locks of calls in flight."""

    def stored_bytes(self, connection: JournalConnection) -> int:
        """The disk space used by the journal, in bytes."""

    def reclaim(self, connection: JournalConnection) -> None:
        """Reclaim the space of deleted answers, outside of a transaction."""

    def remedy(self, error: Exception) -> str:
        """A one-line remedy for one of `errors`."""


class JournalFile:
    """A journal in a SQLite file."""

    begin = "BEGIN IMMEDIATE"
    errors: tuple[type[Exception], ...] = (sqlite3.Error, OSError)
    passing: tuple[type[Exception], ...] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.place: Hashable = path.resolve()

    def connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=LOCK_TIMEOUT, isolation_level=None, factory=TextConnection)
        try:
            # Invalid text counts as a missing answer when read; an error here would stop the journal.
            db.text_factory = lambda stored: stored.decode("utf-8", "replace")
            write_ahead(db, LOCK_TIMEOUT)
            db.execute("PRAGMA synchronous = FULL")
            if _version(db) != SCHEMA_VERSION:
                db.execute("BEGIN IMMEDIATE")
                version = _version(db)  # check again: another process may have created them meanwhile
                if version > SCHEMA_VERSION:
                    raise sqlite3.DatabaseError(OtherFormatError.compare(version, SCHEMA_VERSION))
                for statement in "".join(table.create(SQLITE) for table in JOURNAL_TABLES).splitlines():
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                db.execute("COMMIT")
        except BaseException:
            db.close()  # rolls back
            raise
        return db

    def call_locks(self) -> KeyLocks:
        place = self.path.resolve()
        return KeyLocks(place.with_name(f"{place.name}-calls"))

    def stored_bytes(self, connection: JournalConnection) -> int:
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.is_file())

    def reclaim(self, connection: JournalConnection) -> None:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def remedy(self, error: Exception) -> str:
        name = getattr(error, "sqlite_errorname", "")
        if "another version of Citeloom" in str(error):
            return OtherFormatError.default_help
        if name in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
            return DAMAGED_REMEDY
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return "Another process holds it: wait for that one to end, then run the same command again."
        if name.startswith("SQLITE_FULL"):
            return "Free space on the disk, then run the same command again."
        return "Check that the folder is writable, or choose another with --home."


DAMAGED_REMEDY: Final = "Move the file away: a new journal is started, and earlier calls may be paid for again."
SCHEMA_VERSION: Final = 1
LOCK_TIMEOUT: Final = 30.0  # seconds to wait for another writing process
_KIND: Final = choice(*get_args(CallKind))
_COUNTS: Final = "paid reused input_tokens output_tokens reserved_calls reserved_input reserved_output".split()
ANSWERS: Final = TypedTable(
    "answers",
    ("id",),
    {"id": integer(), "key": TEXT, "kind": _KIND, "endpoint": TEXT, "model": TEXT, "made_at": MOMENT, "rejected": FLAG}
    | {"input_tokens": integer(), "output_tokens": integer(), "payload": TEXT},
    number="id",
    indexes={"answers_by_key": "(key, id)"},
)
USES: Final = TypedTable(
    "uses",
    ("id",),
    {"id": integer(), "run": TEXT, "key": TEXT, "answer": integer(), "paid": FLAG, "used_at": MOMENT},
    number="id",
    indexes={"uses_by_run": "(run, key, id)"},
)
SPENDING: Final = TypedTable(
    "spending",
    ("run", "kind", "endpoint", "model"),
    {"run": TEXT, "kind": _KIND, "endpoint": TEXT, "model": TEXT} | dict.fromkeys(_COUNTS, integer()),
)
# The newest answer when a fresh run began.
BEGINNINGS: Final = TypedTable("beginnings", ("run",), {"run": TEXT, "after": integer()})
CONTEXTS: Final = TypedTable(
    "contexts", ("run", "endpoint", "model"), {"run": TEXT, "endpoint": TEXT, "model": TEXT, "size": integer()}
)
JOURNAL_TABLES: Final = (ANSWERS, USES, SPENDING, BEGINNINGS, CONTEXTS)  # tables before those that refer to them


def _version(db: sqlite3.Connection) -> int:
    with closing(db.execute("PRAGMA user_version")) as cursor:
        return int(cursor.fetchone()[0])


# Spending is counted as it happens, since answers may be pruned, and a budget needs the sum before every call.
# *Reserved* amounts belong to requests without a committed answer: in flight, killed, or lost. They may have been paid
# for, so they count against a budget.
_QUARTER: Final = 900  # seconds
_ADD: Final = (
    f"{SPENDING.insert()} ON CONFLICT ({', '.join(SPENDING.key)})"
    f" DO UPDATE SET {', '.join(f'{name} = spending.{name} + excluded.{name}' for name in _COUNTS)}"
)


def add_spending(db: JournalConnection, run: str, record: CallRecord, **more: int) -> None:
    counts = [more.get(name, 0) for name in _COUNTS]
    db.execute(_ADD, (run, record.kind, record.endpoint, record.model, *counts))


def reserve(db: JournalConnection, reservation: Reservation, sign: Literal[1, -1] = 1) -> None:
    """Reserve a request (`sign` 1), or release a reservation or part of it (-1)."""
    add_spending(
        db,
        reservation.run,
        reservation.record,
        reserved_calls=sign * reservation.calls,
        reserved_input=sign * reservation.input_tokens,
        reserved_output=sign * reservation.output_tokens,
    )


def load_spending(db: JournalConnection, runs: Sequence[str] | None = None) -> list[Spending]:
    """The spending of runs so far, with reservations; of all runs if none are named."""
    if runs is not None and not runs:
        return []
    chosen = "" if runs is None else f" WHERE run IN ({', '.join('?' * len(runs))})"
    columns = ", ".join(SPENDING.stored)
    rows = db.execute(f"SELECT {columns} FROM spending{chosen} ORDER BY run, kind, model", list(runs or ()))
    return [Spending(*row) for row in SPENDING.read(rows)]


def load_spending_by_day(db: JournalConnection, runs: Sequence[str] | None = None) -> list[tuple[str, Spending]]:
    """The spending of each day by model, in local time, for answers and runs that are still stored."""
    chosen = "" if runs is None else f" WHERE u.run IN ({', '.join('?' * len(runs)) or 'NULL'})"
    USES.read(db.execute("SELECT id, paid, used_at FROM uses"))  # sums would count invalid values as 0
    ANSWERS.read(db.execute("SELECT id, kind, endpoint, model, input_tokens, output_tokens FROM answers"))
    # Days begin at different times in different time zones, but always on a quarter of an hour.
    rows = db.execute(
        f"SELECT CAST(round(u.used_at - 0.5) AS bigint) / {_QUARTER} AS quarter, a.kind, a.endpoint, a.model,"
        " sum(u.paid), sum(1 - u.paid), sum(u.paid * a.input_tokens), sum(u.paid * a.output_tokens)"
        f" FROM uses u JOIN answers a ON a.id = u.answer{chosen} GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
        list(runs or ()),
    ).fetchall()
    days: dict[tuple[str, CallKind, str, str], list[int]] = {}
    for quarter, kind, endpoint, model, *counts in rows:
        day = f"{datetime.fromtimestamp(quarter * _QUARTER):%Y-%m-%d}"
        before = days.setdefault((day, kind, endpoint, model), [0] * len(counts))
        days[day, kind, endpoint, model] = [one + int(more) for one, more in zip(before, counts, strict=True)]
    return [
        (day, Spending("", kind, endpoint, model, *counts)) for (day, kind, endpoint, model), counts in days.items()
    ]


def load_context_sizes(db: JournalConnection, run: str) -> dict[tuple[str, str], int | None]:
    """The context sizes of a run's models, by endpoint and model; None if unknown."""
    rows = CONTEXTS.read(db.execute("SELECT run, endpoint, model, size FROM contexts WHERE run = ?", (run,)))
    return {(endpoint, model): size or None for _, endpoint, model, size in rows}


def save_context_sizes(db: JournalConnection, run: str, sizes: Mapping[tuple[str, str], int | None]) -> None:
    rows = [(run, *place, size or 0) for place, size in sizes.items()]
    db.executemany(CONTEXTS.insert("update"), rows)
