"""What runs cost, and the journal of model answers already paid for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from ..models.journal.records import Spending as Spending, Usage as Usage, total_cost
from ..settings.config import Price
from ..stores.home import Home

if TYPE_CHECKING:
    from ..runs.result_record import UsageRecord
    from .results import SpendingRecord, UsageOfDay


async def read_spending(home: Home, run_ids: Sequence[str] = ()) -> list[Spending]:
    """What all runs, or those of these ids or prefixes, spent by model; raises `InputError`, `UnknownRunError`."""
    home.require_library()
    with home.open_journal() as journal:
        rows = await journal.spending()
    if not run_ids:
        return rows
    register = home.runs()
    chosen = {register.get(run_id).thread_id for run_id in run_ids}
    return [row for row in rows if row.run in chosen]


def survey_journal(home: Home) -> dict[str, Any]:
    """Size, age, models and reuse of cached answers, as the JSON of `journal stats --json`; blocks."""
    from ..models.journal.journal import survey

    return survey(home.journal_database())


def prune_journal(
    home: Home, *, older_than: float | None, rejected: bool, embeddings: bool, dry_run: bool
) -> dict[str, Any]:
    """Delete cached answers no unfinished run needs; returns the JSON of `journal prune`. Blocks.

    `older_than` is in days; `rejected` are answers that failed validation; `dry_run` only counts.
    """
    from ..models.journal.journal import prune

    home.require_library()
    home.prepare()
    unfinished = [run.thread_id for run in home.runs().heads() if run.status != "finished"]
    return prune(
        home.journal_database(),
        keep_of_runs=unfinished,
        older_than=older_than,
        rejected=rejected,
        embeddings=embeddings,
        dry_run=dry_run,
    )


def spending_record(row: Spending, prices: Mapping[str, Price]) -> SpendingRecord:
    chat = row.kind == "chat"
    return {
        "run": row.run,
        "model": row.model,
        "endpoint": row.endpoint,
        "llm_calls": row.paid if chat else 0,
        "journal_hits": row.reused if chat else 0,
        "embedded_texts": 0 if chat else row.paid,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "lost_calls": row.reserved_calls,
        "cost": total_cost([row], prices),
    }


def usage_total(rows: Sequence[Spending], prices: Mapping[str, Price]) -> UsageRecord:
    return cast("UsageRecord", asdict(Usage.of(rows, total_cost(rows, prices))))  # which has the same fields


def usage_by_day(rows: Iterable[tuple[str, Spending]], prices: Mapping[str, Price]) -> list[UsageOfDay]:
    """Total per day; rows must be sorted by day."""
    days = groupby(rows, key=lambda item: item[0])
    return [{**usage_total([row for _, row in group], prices), "day": day} for day, group in days]
