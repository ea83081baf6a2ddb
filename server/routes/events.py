"""Streams of events, which a client can leave and come back to."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ..job_responses import event_stream
from ..response_models import event_answers
from ..server_state import StateOf
from ..stored_jobs import stored_run, stored_turn

router = APIRouter(tags=["events"])


@router.get("/runs/{run_id}/events", responses=event_answers(), response_class=Response)
async def run_events(run_id: str, request: Request, state: StateOf) -> Response:
    """The events of a run since `Last-Event-ID`, until it ends; of a run that is not in memory, its end."""
    job = await state.jobs.find(run_id) or await stored_run(run_id, state.session.home)
    return event_stream(await state.jobs.find(job.id) or job, request, state.streams)


@router.get("/conversations/{thread_id}/events", responses=event_answers(), response_class=Response)
async def turn_events(thread_id: str, request: Request, state: StateOf) -> Response:
    """The events of the current turn since `Last-Event-ID`, until it ends; else the end of the last turn."""
    job = await state.jobs.find(thread_id) or await stored_turn(thread_id, state.session.home)
    return event_stream(await state.jobs.find(job.id) or job, request, state.streams)
