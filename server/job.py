"""One piece of work of a server: its events, its state, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ..stores.server_jobs import ACTIVE, JobEntry, JobOrder, JobState
from .event_log import EventLog

# The idempotency key of the request that starts a job: key and job are registered in one transaction.
claimed_key: ContextVar[str] = ContextVar("claimed idempotency key", default="")
Emit = Callable[[str, Mapping[str, Any]], None]
Work = Callable[[Emit], Awaitable[Mapping[str, Any]]]


@dataclass(eq=False)
class Job:
    """A job at work here, or on another server, whose events are then copied here."""

    order: JobOrder
    log: EventLog
    state: JobState = "waiting"
    result: Mapping[str, Any] | None = None
    problem: dict[str, Any] | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)
    registered: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    refused: Exception | None = None  # the error of a job that could not be registered
    followed: bool = False  # another server works on it

    @property
    def id(self) -> str:
        """The id of the run or conversation that the job works on; one of its own for an ingest."""
        return self.order.id

    @property
    def active(self) -> bool:
        """True while it waits or works."""
        return self.state in ACTIVE

    def entry(self) -> JobEntry:
        """What others know of it."""
        return JobEntry(self.order, self.log.epoch, self.state, len(self.log))

    def record(self) -> dict[str, Any]:
        """The state as JSON, for an ingest with its report."""
        record = self.entry().record()
        if self.problem is not None:
            record["problem"] = self.problem
        if self.order.kind == "ingest" and self.result is not None:
            record["result"] = self.result
        return record

    async def ended(self) -> None:
        """Wait for the end, however the job ends; cancelling the wait leaves the job alone."""
        await self.log.wait_closed()
        if self.task is not None:
            await asyncio.wait([self.task])
