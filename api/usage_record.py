"""What runs cost, as plain records for `usage` and the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from ..models.journal.records import Spending, Usage, total_cost
from ..settings.config import Price


def spending_record(row: Spending, prices: Mapping[str, Price]) -> dict[str, Any]:
    """The spending of one run on one model."""
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


def usage_total(rows: Sequence[Spending], prices: Mapping[str, Price]) -> dict[str, Any]:
    """The sum of these rows."""
    return asdict(Usage.of(rows, total_cost(rows, prices)))


def usage_by_day(rows: Iterable[tuple[str, Spending]], prices: Mapping[str, Price]) -> list[dict[str, Any]]:
    """The sum of each day, from its rows in order of days."""
    days = groupby(rows, key=lambda item: item[0])
    return [{"day": day, **usage_total([row for _, row in group], prices)} for day, group in days]
