"""Surveys the journal and prunes answers that are no longer needed."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .journal import JournalError
from .schema import connect, remedy

_DAY: Final = 86_400.0
# A temporary table of ids, so that any number of them can be queried several times.
_CHOOSE: Final = (
    "CREATE TEMP TABLE chosen AS SELECT id, length(payload) AS size,"
    " EXISTS (SELECT 1 FROM uses u JOIN kept_runs k ON k.run = u.run WHERE u.answer = answers.id) AS needed"
    " FROM answers WHERE (made_at < :before OR (:rejected AND rejected)) AND (NOT :embeddings OR kind = 'embedding')"
)


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


def survey(path: Path) -> Survey:
    """Collect statistics of the journal; raises `JournalError`."""
    with _opened(path) as db:
        models = db.execute(
            "SELECT kind, model, endpoint, count(*), sum(length(payload)) FROM answers GROUP BY 1, 2, 3 ORDER BY 4 DESC"
        ).fetchall()
        rejected, oldest, newest = db.execute(
            "SELECT coalesce(sum(rejected), 0), min(made_at), max(made_at) FROM answers"
        ).fetchone()
        made, reused = db.execute("SELECT coalesce(sum(paid), 0), coalesce(sum(reused), 0) FROM spending").fetchone()
        kept = tuple(ModelAnswers(*row) for row in models)
        return Survey(sum(row.answers for row in kept), rejected, made, reused, oldest, newest, _size_of(path), kept)


def prune(
    path: Path, selection: Selection, *, keep_of_runs: Sequence[str], dry_run: bool = False, now: float | None = None
) -> Pruned:
    """Delete answers and reclaim their space, except those in use by `keep_of_runs`.

    Raises `JournalError`, also if another process keeps the file locked.
    """
    before = -1.0
    if selection.older_than is not None:
        before = (time.time() if now is None else now) - selection.older_than * _DAY
    with _opened(path) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TEMP TABLE kept_runs (run TEXT PRIMARY KEY)")
        db.executemany("INSERT OR IGNORE INTO kept_runs VALUES (?)", [(run,) for run in keep_of_runs])
        db.execute(_CHOOSE, {"before": before, "rejected": selection.rejected, "embeddings": selection.embeddings})
        count, size, needed = db.execute(
            "SELECT coalesce(sum(NOT needed), 0), coalesce(sum(size * NOT needed), 0), coalesce(sum(needed), 0)"
            " FROM chosen"
        ).fetchone()
        if dry_run:
            db.execute("ROLLBACK")
            return Pruned(count, size, needed, _size_of(path))
        gone = "(SELECT id FROM chosen WHERE NOT needed)"
        db.execute(f"DELETE FROM uses WHERE answer IN {gone}")
        db.execute(f"DELETE FROM answers WHERE id IN {gone}")
        # SQLite reuses the highest ids: new answers must come after the beginning of every run.
        db.execute("UPDATE beginnings SET after = min(after, (SELECT coalesce(max(id), 0) FROM answers))")
        db.execute("COMMIT")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Pruned(count, size, needed, _size_of(path))


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(connect(path)) as db:
            yield db
    except (sqlite3.Error, OSError) as error:
        raise JournalError(f"{path}: {error}.", help=remedy(error)) from error


def _size_of(path: Path) -> int:
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.is_file())
