"""Surveys the journal and prunes answers that are no longer needed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from ...sqlite import DamagedFileError
from ...table_columns import WrongValueError
from . import spending_table
from .journal import JournalError
from .journal_database import ANSWERS, DAMAGED_REMEDY, JournalConnection, JournalDatabase

_DAY: Final = 86_400.0
# A temporary table of ids, so that any number of them can be queried several times.
_CHOOSE: Final = """
CREATE TEMP TABLE chosen AS SELECT id, length(payload) AS size, CASE WHEN EXISTS (
    SELECT 1 FROM uses u JOIN kept_runs k ON k.run = u.run WHERE u.answer = answers.id
) THEN 1 ELSE 0 END AS needed FROM answers
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """The answers to prune: older than this many days, rejected ones, or embeddings only."""

    older_than: float | None = None
    rejected: bool = False
    embeddings: bool = False


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """The stored answers of one model."""

    kind: str
    model: str
    endpoint: str
    answers: int
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class Survey:
    """Statistics of the whole journal; times are seconds since the epoch."""

    answers: int
    rejected: int
    made: int
    reused: int
    oldest: float | None
    newest: float | None
    file_bytes: int
    models: tuple[ModelAnswers, ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was, or would be, pruned; `kept_for_runs` also matched but are in use by unfinished runs."""

    answers: int
    payload_bytes: int
    kept_for_runs: int
    file_bytes: int


def survey(database: JournalDatabase) -> Survey:
    """Collect statistics of the journal; raises `JournalError`."""
    with _opened(database) as db:
        answers = "SELECT id, kind, model, endpoint, made_at, rejected FROM answers"
        ANSWERS.read(db.execute(answers))  # sums would count invalid values as 0
        spending_table.load_spending(db)
        models = db.execute(
            "SELECT kind, model, endpoint, count(*), coalesce(sum(length(payload)), 0) FROM answers GROUP BY 1, 2, 3"
            " ORDER BY 4 DESC, 1, 2, 3"
        ).fetchall()
        rejected, oldest, newest = db.execute(
            "SELECT coalesce(sum(rejected), 0), min(made_at), max(made_at) FROM answers"
        ).fetchone()
        made, reused = db.execute("SELECT coalesce(sum(paid), 0), coalesce(sum(reused), 0) FROM spending").fetchone()
        kept = tuple(ModelAnswers(row[0], row[1], row[2], int(row[3]), int(row[4])) for row in models)
        stored = database.stored_bytes(db)
    return Survey(sum(row.answers for row in kept), int(rejected), int(made), int(reused), oldest, newest, stored, kept)


def prune(
    database: JournalDatabase,
    selection: Selection,
    *,
    keep_of_runs: Sequence[str],
    dry_run: bool = False,
    now: float | None = None,
) -> Pruned:
    """Delete answers and reclaim their space, except those in use by `keep_of_runs`.

    Raises `JournalError`, also if another process keeps the database locked.
    """
    before = -1.0
    if selection.older_than is not None:
        before = (time.time() if now is None else now) - selection.older_than * _DAY
    with _opened(database) as db:
        db.execute(database.begin)
        db.execute("CREATE TEMP TABLE kept_runs (run TEXT PRIMARY KEY)")
        db.executemany("INSERT INTO kept_runs VALUES (?)", [(run,) for run in set(keep_of_runs)])
        only = " AND kind = 'embedding'" if selection.embeddings else ""
        rejected = " OR rejected = 1" if selection.rejected else ""
        db.execute(f"{_CHOOSE} WHERE (made_at < ?{rejected}){only}", (before,))
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
        return Pruned(int(count), int(size), int(needed), database.stored_bytes(db))


@contextmanager
def _opened(database: JournalDatabase) -> Iterator[JournalConnection]:
    try:
        with closing(database.connect()) as db:
            yield db
    except WrongValueError as error:
        raise DamagedFileError(f"{database.name}: {error}", help=DAMAGED_REMEDY) from None
    except database.errors as error:
        raise JournalError(f"{database.name}: {error}.", help=database.remedy(error)) from error
