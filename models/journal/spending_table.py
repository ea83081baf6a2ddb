"""Tracks the spending of runs by model, in the journal's own transactions.

Spending is counted as it happens, not derived from answers: those may be pruned, and a budget needs it before every
call. *Reserved* amounts are for requests whose answer has not been committed: they are in flight, their process was
killed, or the answer was lost. Such requests may have been paid for, so they count against a budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from .journal_database import ANSWERS, CONTEXTS, SPENDING, USES, JournalConnection
from .records import CallKind, CallRecord, Reservation, Spending

_QUARTER: Final = 900  # seconds
_COUNTS: Final = SPENDING.stored[len(SPENDING.key) :]
_ADD: Final = (
    f"{SPENDING.insert()} ON CONFLICT ({', '.join(SPENDING.key)})"
    f" DO UPDATE SET {', '.join(f'{name} = spending.{name} + excluded.{name}' for name in _COUNTS)}"
)


def add_spending(db: JournalConnection, run: str, record: CallRecord, **more: int) -> None:
    counts = [more.get(name, 0) for name in _COUNTS]
    db.execute(_ADD, (run, record.kind, record.endpoint, record.model, *counts))


def reserve(db: JournalConnection, reservation: Reservation, sign: Literal[1, -1] = 1) -> None:
    """Reserve a request (`sign` 1), or release a reservation or a part of it (-1)."""
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


def load_spending_by_day(db: JournalConnection) -> list[tuple[str, Spending]]:
    """The spending of each day by model, in local time, as far as the answers and runs are still stored."""
    USES.read(db.execute("SELECT id, paid, used_at FROM uses"))  # sums would count invalid values as 0
    ANSWERS.read(db.execute("SELECT id, kind, endpoint, model, input_tokens, output_tokens FROM answers"))
    # Days begin at different times in different time zones, but always on a quarter of an hour.
    rows = db.execute(
        f"SELECT CAST(round(u.used_at - 0.5) AS bigint) / {_QUARTER} AS quarter, a.kind, a.endpoint, a.model,"
        " sum(u.paid), sum(1 - u.paid), sum(u.paid * a.input_tokens), sum(u.paid * a.output_tokens)"
        " FROM uses u JOIN answers a ON a.id = u.answer GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
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
