"""Jobs as the registers hold them, for a client that asks for the events of work that no longer is in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ..api.events import EventRecorder
from ..runs.conversation import paused_turn
from ..runs.execution import RunUnderWayError
from ..runs.result_record import public_record, stored
from ..runs.transcript import turn_record
from ..stores.backends import backend_of
from ..stores.home import Home
from ..stores.job_records import JobKind, JobOrder, JobState
from .event_log import EventLog
from .job import Job
from .problems import ServerError, problem

_EPOCH = "stored"
_STOPPED = {"message": "Stopped. Completed calls are saved."}


async def stored_run(run_id: str, home: Home) -> Job:
    """The end of a run that another server or the command line worked on.

    Raises `UnknownRunError`, and `RunUnderWayError` while another process works on it.
    """
    register = await asyncio.to_thread(backend_of(home).runs)
    run = await asyncio.to_thread(register.get, run_id)
    if run.status == "finished" and run.result is not None:
        return ended_job(run.thread_id, "run", public_record(stored(run.result)))
    if await asyncio.to_thread(backend_of(home).run_under_way, run.thread_id):
        raise RunUnderWayError(f"Run {run.thread_id} is under way in another process.", help="Wait for it to end.")
    if run.status == "failed":
        return _job(run.thread_id, "run", "failed", "error", problem(502, run.detail or "The run failed."))
    return _job(run.thread_id, "run", "paused", "stopped", _STOPPED)


async def stored_turn(thread_id: str, home: Home) -> Job:
    """The end of a conversation's last turn; raises `UnknownConversationError`, and `ServerError` without any turn."""
    register = await asyncio.to_thread(backend_of(home).conversations)
    entry = await asyncio.to_thread(register.get, thread_id)
    if await paused_turn(entry.thread_id, home) is not None:
        return _job(entry.thread_id, "turn", "paused", "stopped", _STOPPED)
    last = await asyncio.to_thread(register.last_turn, entry.thread_id)
    if last is None:
        raise ServerError(404, f"Conversation {entry.thread_id}: nothing was asked yet.")
    return ended_job(entry.thread_id, "turn", turn_record(last))


def ended_job(job_id: str, kind: JobKind, result: Mapping[str, Any]) -> Job:
    """A finished job with its result as the only event."""
    log = EventLog(_EPOCH)
    EventRecorder(lambda event: log.append(event["kind"], event)).done(result)
    log.close()
    return Job(JobOrder(job_id, kind, {}), log, "finished", result)


def _job(job_id: str, kind: JobKind, state: JobState, name: str, data: Mapping[str, Any]) -> Job:
    log = EventLog(_EPOCH)
    log.append(name, data)
    log.close()
    return Job(JobOrder(job_id, kind, {}), log, state, problem=dict(data) if name == "error" else None)
