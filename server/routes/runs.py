"""Runs: listed, shown, resumed, stopped and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Response

from ...runs.run_listing import run_details, run_summary
from ...stores.backends import backend_of
from ...stores.server_jobs import JobEntry
from ..job_requests import JobCall
from ..request_models import Limit, LimitedBody, Offset
from ..response_models import RunDetails, RunList, Stopped, job_answers, problems
from ..run_jobs import Limits
from ..server_state import StateOf

router = APIRouter(prefix="/runs", tags=["runs"])


@router.get("", responses=problems())
async def list_runs(state: StateOf, limit: Limit = 50, offset: Offset = 0) -> RunList:
    """The runs, the latest first."""

    def page() -> tuple[list[dict[str, Any]], int]:
        runs = backend_of(state.session.home).runs()
        return [run_summary(run, state.session.home) for run in runs.heads(limit, offset)], runs.count()

    records, total = await asyncio.to_thread(page)
    jobs = await state.jobs.known()
    return RunList.model_validate({"runs": [_with_job(record, jobs) for record in records], "total": total})


@router.get("/{run_id}", responses=problems(404))
async def get_run(run_id: str, state: StateOf) -> RunDetails:
    """A run by its id or a prefix of it, with its result once it is finished."""
    return RunDetails.model_validate(_with_job(await run_details(run_id, state.session.home), await state.jobs.known()))


@router.post("/{run_id}/resume", responses=job_answers(404), response_class=Response)
async def resume_run(run_id: str, call: JobCall, body: LimitedBody | None = None) -> Response:
    """Resume a paused or killed run, with other limits if they are given; a finished one answers with its result."""
    limits: Limits = {} if body is None else body.limits()
    return await call.answer(limits, lambda: call.state.runs.resume_run(run_id, limits))


@router.post("/{run_id}/cancel", responses=problems(404))
async def cancel_run(run_id: str, state: StateOf) -> Stopped:
    """Stop a run, on whichever server it works; it is paused, and what was paid for is kept."""
    run = await state.runs.find_run(run_id)
    return Stopped(id=run.thread_id, stopped=await state.jobs.stop(run.thread_id))


@router.delete("/{run_id}", status_code=204, responses=problems(404, 409))
async def remove_run(run_id: str, state: StateOf) -> None:
    """Delete the run with exactly this id, if it is not active; cached model answers stay."""
    await state.runs.delete_run(run_id)


def _with_job(record: dict[str, Any], jobs: Mapping[str, JobEntry]) -> dict[str, Any]:
    job = jobs.get(record["thread_id"])
    if job is None or not job.active:
        return record
    return {**record, "status": "running", "active": job.record()}
