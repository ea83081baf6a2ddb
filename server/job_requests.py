"""Requests that begin or join a job: with their idempotency key, and answered as the client asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Request, Response

from .idempotency import IdempotencyKey, Start, request_mark
from .job_responses import job_response
from .server_state import ServerState, StateOf


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request for a run or a turn."""

    request: Request
    state: ServerState
    key: str | None

    async def answer(self, content: Any, start: Start, place: Literal["runs", "conversations"] = "runs") -> Response:
        """The job that `start` begins, or that an earlier request with the same key and content began."""
        mark = request_mark(self.request, content)
        job = await self.state.keys.once(self.key, mark, find=self.state.runs.find, start=start)
        return await job_response(job, self.request, f"/api/v1/{place}/{job.id}", self.state.streams)


def _job_request(request: Request, state: StateOf, idempotency_key: IdempotencyKey = None) -> JobRequest:
    return JobRequest(request, state, idempotency_key)


JobCall = Annotated[JobRequest, Depends(_job_request)]
