"""A server job: its state, its outcome, and its events, which any number of streams read at their own pace."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NotRequired

from typing_extensions import TypedDict

from ..api import results, serving
from ..api.serving import ACTIVE, JobEntry, JobOrder, JobState
from ..errors import CiteloomError, causes
from .problems import Problem, problem

# The idempotency key of the request that starts a job: key and job are registered in one transaction.
STOPPED: Final = {"message": "Stopped. Completed calls are saved."}
claimed_key: ContextVar[str] = ContextVar("claimed idempotency key", default="")
Emit = Callable[[str, Mapping[str, Any]], None]
Work = Callable[[Emit], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    id: str
    name: str
    data: str


class EventLog:
    """Events with ids `EPOCH.NUMBER`; the epoch changes when the job restarts.

    Used from one event loop. A reader that reconnects with its last id misses nothing: if the id is from an earlier
    epoch, it gets `reset` (discard all events so far) and then all events. So do current readers when the log
    restarts because another server took over the job.
    """

    def __init__(self, epoch: str) -> None:
        self.epoch = epoch
        self._events: list[tuple[str, str]] = []
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()
        self.size = 0  # characters

    def __len__(self) -> int:
        return len(self._events)

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def append(self, name: str, data: Mapping[str, Any]) -> None:
        self.extend([(name, as_text(data))])

    def extend(self, events: Sequence[tuple[str, str]]) -> None:
        self._events += events
        self.size += sum(len(data) for _, data in events)
        self._wake()

    def since(self, place: int) -> list[tuple[str, str]]:
        return self._events[place:]

    def restart(self, epoch: str) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self._events = []
            self.size = 0
            self._wake()

    def close(self) -> None:
        self._closed.set()
        self._wake()

    async def wait_closed(self) -> None:
        await self._closed.wait()

    def exhausted_after(self, last_id: str | None) -> bool:
        """True if there is nothing to read after the event with this id."""
        return self.closed and self._place_after(last_id) == len(self._events)

    async def read(self, last_id: str | None = None) -> AsyncGenerator[LoggedEvent, None]:
        """The events after `last_id`, as they come, until the log is closed."""
        epoch, place = self.epoch, self._place_after(last_id)
        while True:
            changed = self._changed
            if epoch != self.epoch or place is None or (self.closed and place > len(self._events)):
                epoch, place = self.epoch, 0
                yield LoggedEvent(f"{epoch}.", "reset", "{}")
            while epoch == self.epoch and place < len(self._events):
                name, data = self._events[place]
                yield LoggedEvent(f"{epoch}.{place}", name, data)
                place += 1
            if self.closed and epoch == self.epoch and place == len(self._events):
                return
            if changed is self._changed:
                await changed.wait()

    def _place_after(self, last_id: str | None) -> int | None:
        """The position after this event id; the event may still be on its way from another server."""
        if not last_id:
            return 0
        epoch, _, number = last_id.partition(".")
        known = epoch == self.epoch and number.isascii() and number.isdigit() and len(number) < 12
        return int(number) + 1 if known else None

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def as_text(data: Mapping[str, Any]) -> str:
    """An event's data as JSON; lone surrogates are replaced."""
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace").decode()


class JobRecord(TypedDict):
    """A piece of work; its events are at the path of its run, conversation or ingest plus `/events`."""

    id: str
    kind: str
    state: str
    events: int
    problem: Problem | None
    result: NotRequired[Annotated[dict[str, Any], results.Meaning("The report of a finished ingest.")]]


def job_record(entry: JobEntry, problem: Problem | None = None) -> JobRecord:
    order = entry.order
    return {"id": order.id, "kind": order.kind, "state": entry.state, "events": entry.events, "problem": problem}


def active_record(jobs: Mapping[str, JobEntry], job_id: str) -> JobRecord | None:
    job = jobs.get(job_id)
    return job_record(job) if job is not None and job.active else None


@dataclass(eq=False)
class Job:
    """A job of this server, or of another server whose events are copied here."""

    order: JobOrder
    log: EventLog
    state: JobState = "waiting"
    result: Mapping[str, Any] | None = None
    problem: Problem | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)
    registered: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    refused: Exception | None = None  # the error of a job that could not be registered
    followed: bool = False  # another server works on it
    changed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)  # set if another server changed the job

    @property
    def id(self) -> str:
        return self.order.id

    @property
    def active(self) -> bool:
        return self.state in ACTIVE

    def entry(self) -> JobEntry:
        return JobEntry(self.order, self.log.epoch, self.state, len(self.log))

    def record(self) -> JobRecord:
        """The state as JSON, plus the report of an ingest."""
        record = job_record(self.entry(), self.problem)
        if self.order.kind == "ingest" and self.result is not None:
            record["result"] = dict(self.result)
        return record

    def why_no_result(self) -> Problem:
        """The problem of an ended job without a result."""
        return self.problem or problem(503, STOPPED["message"], help="Ask again to go on.")

    async def ended(self) -> None:
        """Wait until the job ends in any way; cancelling the wait does not affect the job."""
        await self.log.wait_closed()
        if self.task is not None:
            await asyncio.wait([self.task])


_PUBLISH_INTERVAL: Final = 0.1  # seconds to collect events of all jobs
_FOLLOW_TIMEOUT: Final = 2.0  # seconds between polls
_RESTART_TIMEOUT: Final = 60.0  # seconds for a database to restart
_POLL_INTERVAL: Final = 0.5
_log = logging.getLogger("citeloom.server")


class EventPublisher:
    """Stores new events of logs; used from one event loop."""

    def __init__(self, register: serving.ServerJobs) -> None:
        self._register = register
        self._logs: dict[str, EventLog] = {}
        self._stored: dict[str, int] = {}
        self._filled = asyncio.Event()
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def open(self, job_id: str, log: EventLog) -> None:
        self._logs[job_id], self._stored[job_id] = log, 0
        if self._task is None:
            self._task = asyncio.create_task(self._write(), name="event publisher")

    def notify(self) -> None:
        self._filled.set()

    async def detach(self, job_id: str) -> Callable[[], serving.EventBatch]:
        """Stop storing a job's events; the returned function gives the events not stored yet, including later ones."""
        async with self._writing:
            log, place = self._logs.pop(job_id, EventLog("")), self._stored.pop(job_id, 0)
        return lambda: serving.EventBatch(job_id, log.epoch, place, log.since(place))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _write(self) -> None:
        while True:
            await self._filled.wait()
            self._filled.clear()
            async with self._writing:
                await self._store()
            await asyncio.sleep(_PUBLISH_INTERVAL)

    async def _store(self) -> None:
        batches = [
            serving.EventBatch(job_id, log.epoch, self._stored[job_id], log.since(self._stored[job_id]))
            for job_id, log in self._logs.items()
            if len(log) > self._stored[job_id]
        ]
        try:
            if batches:
                await asyncio.shield(asyncio.to_thread(self._register.append, batches))
        except CiteloomError as error:
            _log.warning("Events are not stored for the other servers yet: %s", error.message)
            self._filled.set()
            return
        for batch in batches:
            self._stored[batch.job_id] = batch.first + len(batch.events)


async def follow(job: Job, register: serving.ServerJobs) -> None:
    """Copy a job's events to its log until it ends; the log restarts when another server takes over."""
    while not await _catch_up(job, register):
        with suppress(TimeoutError):
            await asyncio.wait_for(job.changed.wait(), _FOLLOW_TIMEOUT)
        job.changed.clear()


async def _catch_up(job: Job, register: serving.ServerJobs) -> bool:
    """Copy new events; returns whether the job has ended."""
    try:
        page = await asyncio.to_thread(register.events, job.id, job.log.epoch, len(job.log))
    except CiteloomError as error:
        _log.warning("Job %s cannot be followed: %s", job.id, error.message)
        return False
    if page is None:
        job.state = "paused"
    else:
        job.log.restart(page.epoch)
        for name, data in page.events:
            if name == "done":
                job.result = json.loads(data)["result"]
            elif name == "error":
                job.problem = json.loads(data)
        job.log.extend(page.events)
        job.state = page.state
    if job.state in serving.ACTIVE:
        return False
    job.log.close()
    return True


def lost_connection(error: BaseException) -> bool:
    return any(isinstance(each, serving.ConnectionLostError) for each in causes(error)) and not lost_lease(error)


def lost_lease(error: BaseException) -> bool:
    return any(isinstance(each, serving.LeaseLostError) for each in causes(error))


async def wait_for_database(register: serving.ServerJobs) -> bool:
    """Wait for the database; returns whether it answers and still accepts this server."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _RESTART_TIMEOUT
    while loop.time() < until:
        try:
            await asyncio.to_thread(register.entry, "")
        except serving.LeaseLostError:
            return False
        except CiteloomError:
            await asyncio.sleep(_POLL_INTERVAL)
        else:
            return True
    return False
