"""Responses to requests that start, join or follow a job: its events, its result, or a reference to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Request, Response
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.types import Receive, Scope, Send

from .idempotency import IdempotencyKey, Start, request_fingerprint
from .job import Job
from .problems import problem_response
from .server_state import ServerState, StateOf, StreamCount

_PING = 15  # seconds
_SEND_TIMEOUT = 120  # seconds a client may read nothing before it has to reconnect


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request for a run or a turn."""

    request: Request
    state: ServerState
    key: str | None

    async def answer(self, content: Any, start: Start, place: Literal["runs", "conversations"] = "runs") -> Response:
        """The job that `start` starts, or that the same request started earlier with the same key."""
        fingerprint = request_fingerprint(self.request, content)
        job = await self.state.keys.get_or_call(self.key, fingerprint, find=self.state.runs.find, start=start)
        return await job_response(job, self.request, f"/api/v1/{place}/{job.id}", self.state.streams)

    async def refer(self, content: Any, start: Start) -> Response:
        """Like `answer`, for an ingest: as events if requested, else as 202."""
        fingerprint = request_fingerprint(self.request, content)
        job = await self.state.keys.get_or_call(self.key, fingerprint, find=self.state.ingests.find, start=start)
        location = f"/api/v1/ingests/{job.id}"
        if _wants_events(self.request):
            return event_stream(job, self.request, self.state.streams, {"Content-Location": location})
        return JSONResponse(job.record(), 202, {"Location": location})


def _wants_events(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")


def _job_request(request: Request, state: StateOf, idempotency_key: IdempotencyKey = None) -> JobRequest:
    return JobRequest(request, state, idempotency_key)


JobCall = Annotated[JobRequest, Depends(_job_request)]


class EventResponse(EventSourceResponse):
    """An event stream with pings that ends if the client stops reading."""

    def __init__(self, events: AsyncGenerator[ServerSentEvent, None], headers: Mapping[str, str] | None = None) -> None:
        kept = {"Cache-Control": "no-store", **(headers or {})}
        super().__init__(events, ping=_PING, send_timeout=_SEND_TIMEOUT, headers=kept)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(SendTimeoutError):
            await super().__call__(scope, receive, send)


async def job_response(job: Job, request: Request, location: str, streams: StreamCount) -> Response:
    """A job as events (`Accept: text/event-stream`), as 202 (`Prefer: respond-async`), or as its result at the end.

    The job goes on if the client disconnects.
    """
    if _wants_events(request):
        return event_stream(job, request, streams, {"Content-Location": location})
    if "respond-async" in request.headers.get("prefer", ""):
        return JSONResponse(job.record(), 202, {"Location": location, "Preference-Applied": "respond-async"})
    await job.ended()
    if job.result is not None:
        return JSONResponse(dict(job.result), headers={"Content-Location": location})
    return problem_response(job.why_no_result(), {"Content-Location": location})


def event_stream(job: Job, request: Request, streams: StreamCount, headers: dict[str, str] | None = None) -> Response:
    """A job's events after the client's last one; if there are none, 204, which makes it stop reconnecting.

    Raises `ServerError` if too many streams are open.
    """
    last_id = request.headers.get("last-event-id")
    if last_id and job.log.exhausted_after(last_id):
        return Response(status_code=204)
    streams.require_free()

    async def events() -> AsyncGenerator[ServerSentEvent, None]:
        with streams.open():
            async for event in job.log.read(last_id):
                yield ServerSentEvent(event.data, event=event.name, id=event.id, sep="\n")

    return EventResponse(events(), headers)
