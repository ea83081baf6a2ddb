"""Surveys the journal and prunes answers that are no longer needed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

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


_OF_MODEL: Final = ("kind", "model", "endpoint", "answers", "payload_bytes")


def survey(database: JournalDatabase) -> dict[str, Any]:
    """Statistics of the whole journal, and of each model; times are seconds since the epoch. Raises `JournalError`."""
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
    """Delete answers and reclaim their space, except those in use by `keep_of_runs`; returns what was, or would be.

    Chosen are answers `older_than` this many days, `rejected` ones, or only `embeddings` among these. Raises
    `JournalError`, also if another process keeps the database locked.
    """
    before = -1.0
    if older_than is not None:
        before = (time.time() if now is None else now) - older_than * _DAY
    with _opened(database) as db:
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
def _opened(database: JournalDatabase) -> Iterator[JournalConnection]:
    try:
        with closing(database.connect()) as db:
            yield db
    except WrongValueError as error:
        raise DamagedFileError(f"{database.name}: {error}", help=DAMAGED_REMEDY) from None
    except database.errors as error:
        raise JournalError(f"{database.name}: {error}.", help=database.remedy(error)) from error
