"""Lists, shows, resumes and deletes the runs stored in a home; what they cost, and the journal of paid answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from ..models.journal.records import Spending as Spending, Usage as Usage, total_cost
from ..settings.config import Price, Settings
from ..stores.backends import backend_of
from ..stores.home import Home
from ..stores.run_register import RunHead as RunHead, RunRecord as RunRecord, UnknownRunError as UnknownRunError

if TYPE_CHECKING:
    from ..graph.session import Session
    from ..runs.result_record import UsageRecord
    from ..runs.run_requests import RunRequest
    from .results import RunDetails, RunQuery, RunSummary, SpendingRecord, UsageOfDay, WaitingQuestion


def run_summary(run: RunRecord | RunHead, home: Home) -> RunSummary:
    """A run's current status; a "running" run without a process was killed. Blocks."""
    killed = run.status == "running" and home.copy_of is None and not backend_of(home).run_under_way(run.thread_id)
    record = {item.name: getattr(run, item.name) for item in fields(RunHead)}
    return cast("RunSummary", {**record, "status": "killed" if killed else run.status})  # which has the same fields


async def run_details(run_id: str, home: Home) -> RunDetails:
    """The JSON of `runs show`: status, searches, and the result once finished; raises `UnknownRunError`."""
    from ..drafts.written_draft import searches_of
    from ..runs.execution import run_state  # imports LangGraph, not needed for lists
    from ..runs.output_files import public_record
    from ..runs.result_record import stored

    register = await asyncio.to_thread(backend_of(home).runs)
    run = await asyncio.to_thread(register.get, run_id)
    summary = await asyncio.to_thread(run_summary, run, home)
    state = await run_state(home, run.thread_id)
    queries: list[RunQuery] = [
        {"query": record["query"], "origin": record["origin"], "evidence_ids": record["evidence_ids"]}
        for record in searches_of(state.values.get("queries", []))
    ]
    result = None if run.result is None else dict(public_record(stored(run.result)))
    asked = state.interrupts[0] if state.interrupts and run.status == "asking" else None
    waiting = cast("WaitingQuestion", {**asked.value["citeloom"], "question": asked.id}) if asked else None
    return {**summary, "queries": queries, "waiting": waiting, "result": result}


def run_heads(home: Home, limit: int | None = None, offset: int = 0) -> list[RunHead]:
    """The registered runs without their results, the latest first; blocks."""
    return backend_of(home).runs().heads(limit, offset)


def list_runs(home: Home, limit: int | None = None, offset: int = 0) -> list[RunSummary]:
    """The runs as in `runs list --json`, the latest first; blocks."""
    return [run_summary(run, home) for run in run_heads(home, limit, offset)]


def count_runs(home: Home) -> int:
    """The number of registered runs; blocks."""
    return backend_of(home).runs().count()


def find_run(home: Home, run_id: str) -> RunRecord:
    """Find a run by id or unique prefix; blocks. Raises `UnknownRunError`."""
    return backend_of(home).runs().get(run_id)


def is_under_way(home: Home, run_id: str) -> bool:
    """Whether a process works on this run or conversation; blocks."""
    return backend_of(home).run_under_way(run_id)


async def delete_run(home: Home, run_id: str) -> RunRecord:
    """Delete a run, but not its cached answers; raises `UnknownRunError`, and `RunUnderWayError` while it runs."""
    from ..runs import execution  # imports LangGraph, not needed for lists

    return await execution.delete_run(home, run_id)


@dataclass(frozen=True, slots=True)
class ResumableRun:
    """A registered run with the request and settings to resume it."""

    run: RunRecord
    request: RunRequest
    settings: Settings

    @classmethod
    def load(cls, run_id: str, home: Home, current: Settings, given: Mapping[str, Any]) -> ResumableRun:
        """Load a run: text settings come from the run, unless `given` now, all others from `current`; blocks.

        Raises `UnknownRunError`, and `ConfigurationError` if the run's endpoint differs from that in `current`.
        """
        from ..runs.run_requests import request_to_resume, settings_to_resume

        run = find_run(home, run_id)
        settings = settings_to_resume(run, current, home, given)
        return cls(run, request_to_resume(run), settings)

    async def require_unchanged(self, session: Session) -> None:
        """Raise `InputError` if library or prompts changed since the run started."""
        from ..runs.run_requests import require_same_run

        await asyncio.to_thread(require_same_run, self.run, self.request, session)


async def read_spending(home: Home, run_ids: Sequence[str] = ()) -> list[Spending]:
    """What all runs, or those of these ids or prefixes, spent by model; raises `InputError`, `UnknownRunError`."""
    home.require_library()
    backend = backend_of(home)
    with backend.open_journal() as journal:
        rows = await journal.spending()
    if not run_ids:
        return rows
    register = backend.runs()
    chosen = {register.get(run_id).thread_id for run_id in run_ids}
    return [row for row in rows if row.run in chosen]


def survey_journal(home: Home) -> dict[str, Any]:
    """Size, age, models and reuse of cached answers, as the JSON of `journal stats --json`; blocks."""
    from ..models.journal.maintenance import survey

    return survey(backend_of(home).journal_database())


def prune_journal(
    home: Home, *, older_than: float | None, rejected: bool, embeddings: bool, dry_run: bool
) -> dict[str, Any]:
    """Delete cached answers no unfinished run needs; returns the JSON of `journal prune`. Blocks.

    `older_than` is in days; `rejected` are answers that failed validation; `dry_run` only counts.
    """
    from ..models.journal.maintenance import prune

    home.require_library()
    home.prepare()
    backend = backend_of(home)
    unfinished = [run.thread_id for run in backend.runs().heads() if run.status != "finished"]
    return prune(
        backend.journal_database(),
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
