"""Idempotency keys: a request repeated with its key joins the job it started before, at no cost.

Keys last a day, even across restarts; reuse for another request is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Header, Request

from ..api.serving import KeyUse, RequestKeys
from .job import Job, claimed_key
from .problems import ServerError

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Any unique text: the same request with the same key joins its work instead of beginning it again.",
    ),
]
Find = Callable[[Mapping[str, Any]], Awaitable[Job | None]]
Start = Callable[[], Awaitable[Job]]


@dataclass(frozen=True, slots=True)
class IdempotencyKeys:
    """A library's keys; uncommitted claims become void when their server is gone."""

    register: RequestKeys

    async def get_or_call(self, key: str | None, request: str, *, find: Find, start: Start) -> Job:
        """Return the job this key started earlier, if `find` still knows it; else call `start`.

        `request` is the request's fingerprint; `find` gets the job's stored order. Raises `ServerError` with status 422
        if the key belongs to another request, and 409 while the first request with the key is being started.
        """
        if key is None:
            return await start()
        name = hashlib.sha256(key.encode()).hexdigest()
        earlier = await asyncio.to_thread(self.register.claim, name, request)
        if earlier is not None:
            job = await _join(earlier, request, find)
            if job is not None:
                return job
        claimed = claimed_key.set(name)
        try:
            job = await start()
        except BaseException:
            await asyncio.shield(asyncio.to_thread(self.register.release, name))
            raise
        finally:
            claimed_key.reset(claimed)
        order = {"id": job.order.id, "kind": job.order.kind, "request": job.order.request}
        await asyncio.shield(asyncio.to_thread(self.register.commit, name, order))
        return job


async def _join(earlier: KeyUse, request: str, find: Find) -> Job | None:
    if earlier.request != request:
        raise ServerError(422, "The Idempotency-Key was used for another request.", help="Use a new key.")
    if earlier.order is None:
        raise ServerError(409, "The first request with this key is being started.", retry_after=1)
    return await find(earlier.order)


def request_fingerprint(request: Request, content: Any) -> str:
    """Identifies a request by its path and content."""
    given = json.dumps([request.url.path, content], sort_keys=True, default=str)
    return hashlib.sha256(given.encode("utf-8", "replace")).hexdigest()
