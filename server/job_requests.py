"""Responses to requests that start, join or follow a job: its events, its result, or a reference to it.

A request repeated with its idempotency key joins the job it started before, at no cost. Keys last a day, even across
restarts; reuse for another request is refused. Uncommitted claims become void when their server is gone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Header, Request, Response
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.types import Receive, Scope, Send

from ..api import people, serving
from .job import Job, claimed_key
from .problems import ProblemResponse, ServerError
from .server_state import ServerState, StateOf, StreamCount

_PING = 15  # seconds
_SEND_TIMEOUT = 120  # seconds a client may read nothing before it has to reconnect


IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Any unique text: repeating a request with the same key joins the work that it started.",
    ),
]
Find = Callable[[serving.JobOrder], Awaitable[Job | None]]
Start = Callable[[], Awaitable[Job]]
Place = Literal["runs", "conversations", "tables", "ingests"]


@dataclass(frozen=True, slots=True)
class JobRequest:
    request: Request
    state: ServerState
    key: str | None

    async def answer(self, content: Any, start: Start, place: Place = "runs") -> Response:
        """Respond with the job that `start` starts, or that the same request started earlier with the same key.

        The response is a stream of events (`Accept: text/event-stream`), a 202 (`Prefer: respond-async`, and always for
        an ingest), or the result at the end. The job continues if the client disconnects.
        """
        known = self.state.ingests if place == "ingests" else self.state.runs
        job = await self._get_or_start(content, known.find, start)
        location, headers = f"/api/v1/{place}/{job.id}", self.request.headers
        if "text/event-stream" in headers.get("accept", ""):
            return event_stream(job, self.request, self.state.streams, {"Content-Location": location})
        preferred = "respond-async" in headers.get("prefer", "")
        if preferred or job.order.kind == "ingest":
            applied = {"Preference-Applied": "respond-async"} if preferred else {}
            return JSONResponse(job.record(), 202, {"Location": location, **applied})
        await job.ended()
        if job.result is not None:
            return JSONResponse(dict(job.result), headers={"Content-Location": location})
        return ProblemResponse(job.why_no_result(), {"Content-Location": location})

    async def _get_or_start(self, content: Any, find: Find, start: Start) -> Job:
        """Return the job started earlier with this key if `find` can still find it; otherwise start one with `start`.

        Raises `ServerError` with status 422 if the key belongs to another request, and 409 while the first request with
        the key is being started.
        """
        if self.key is None:
            return await start()
        key, register = f"{people.acting.get()} {self.key}".strip(), self.state.member.keys
        name = hashlib.sha256(key.encode()).hexdigest()
        given = json.dumps([self.request.url.path, content], sort_keys=True, default=str)
        fingerprint = hashlib.sha256(given.encode("utf-8", "replace")).hexdigest()
        earlier = await asyncio.to_thread(register.claim, name, fingerprint)
        if earlier is not None:
            if earlier.request != fingerprint:
                raise ServerError(422, "The Idempotency-Key was used for another request.", help="Use a new key.")
            if earlier.order is None:
                raise ServerError(409, "The first request with this key is being started.", retry_after=1)
            if (job := await find(earlier.order)) is not None:
                return job
        claimed = claimed_key.set(name)
        try:
            job = await start()
        except BaseException:
            await asyncio.shield(asyncio.to_thread(register.release, name))
            raise
        finally:
            claimed_key.reset(claimed)
        await asyncio.shield(asyncio.to_thread(register.commit, name, job.order))
        return job


def _job_request(request: Request, state: StateOf, idempotency_key: IdempotencyKey = None) -> JobRequest:
    return JobRequest(request, state, idempotency_key)


JobCall = Annotated[JobRequest, Depends(_job_request)]


class EventResponse(EventSourceResponse):
    def __init__(self, events: AsyncGenerator[ServerSentEvent, None], headers: Mapping[str, str] | None = None) -> None:
        kept = {"Cache-Control": "no-store", **(headers or {})}
        super().__init__(events, ping=_PING, send_timeout=_SEND_TIMEOUT, headers=kept)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(SendTimeoutError):
            await super().__call__(scope, receive, send)


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
