"""Streams of events, which a client can leave and come back to."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ..job_responses import event_stream, require_job
from ..server_state import StateOf

router = APIRouter(tags=["events"])


@router.get("/runs/{run_id}/events")
async def run_events(run_id: str, request: Request, state: StateOf) -> Response:
    """The events of a run since `Last-Event-ID`, until it ends."""
    return event_stream(require_job(state.jobs.get(run_id), f"Run {run_id}"), request, state.streams)


@router.get("/conversations/{thread_id}/events")
async def turn_events(thread_id: str, request: Request, state: StateOf) -> Response:
    """The events of the current turn since `Last-Event-ID`, until it ends."""
    job = require_job(state.jobs.get(thread_id), f"Conversation {thread_id}")
    return event_stream(job, request, state.streams)
