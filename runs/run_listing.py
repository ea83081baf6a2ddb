"""Runs as plain records, for `runs list`, `runs show` and the server."""

from __future__ import annotations

import asyncio
from typing import Any

from ..stores.backends import backend_of
from ..stores.home import Home
from ..stores.run_records import RunHead, RunRecord

_FIELDS = (
    "thread_id",
    "section",
    "title",
    "status",
    "detail",
    "library_version",
    "fresh",
    "started_at",
    "updated_at",
)


def run_summary(run: RunRecord | RunHead, home: Home) -> dict[str, Any]:
    """The current status of a run; a "running" run that no process holds was killed. Blocks."""
    record = {name: getattr(run, name) for name in _FIELDS}
    if run.status == "running" and home.copy_of is None and not backend_of(home).run_under_way(run.thread_id):
        record["status"] = "killed"
    return record


async def run_details(run_id: str, home: Home) -> dict[str, Any]:
    """The JSON of `runs show`: status, searches, and the result once finished; raises `UnknownRunError`."""
    from .execution import state_values  # with LangGraph, which lists do without
    from .output_files import public_record
    from .result_record import stored

    register = await asyncio.to_thread(backend_of(home).runs)
    run = await asyncio.to_thread(register.get, run_id)
    summary = await asyncio.to_thread(run_summary, run, home)
    values = await state_values(home, run.thread_id)
    queries = [
        {key: record[key] for key in ("query", "origin", "evidence_ids")} for record in values.get("queries", [])
    ]
    result = None if run.result is None else public_record(stored(run.result))
    return {**summary, "queries": queries, "result": result}
