"""Lets servers of one library share jobs: publish and follow events, and resume orphaned jobs.

`EventPublisher` stores the events of this server's jobs. `follow` copies events of other servers' jobs to a log here,
so any server can stream and await any job. `JobRecovery` resumes jobs of servers that are gone.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from ..api.serving import (
    ACTIVE,
    ConnectionLostError,
    EventBatch,
    JobOrder,
    LeaseLostError,
    Listener,
    ServerJobs,
)
from ..errors import CiteloomError, PausedError
from .job import EventLog, Job
from .problems import http_status

_PUBLISH_INTERVAL: Final = 0.1  # seconds to collect events of all jobs
_FOLLOW_TIMEOUT: Final = 2.0  # seconds between polls
_RESTART_TIMEOUT: Final = 60.0  # seconds for a database to restart
_POLL_INTERVAL: Final = 0.5
_log = logging.getLogger("citeloom.server")


class EventPublisher:
    """Stores new events of logs; used from one event loop."""

    def __init__(self, register: ServerJobs) -> None:
        self._register = register
        self._logs: dict[str, EventLog] = {}
        self._stored: dict[str, int] = {}
        self._filled = asyncio.Event()
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def open(self, job_id: str, log: EventLog) -> None:
        """Start storing a job's events."""
        self._logs[job_id], self._stored[job_id] = log, 0
        if self._task is None:
            self._task = asyncio.create_task(self._write(), name="event publisher")

    def notify(self) -> None:
        """Wake the writer."""
        self._filled.set()

    async def last(self, job_id: str) -> Callable[[], EventBatch]:
        """Stop storing a job's events; the returned function gives the unstored ones, including later ones."""
        async with self._writing:
            log, place = self._logs.pop(job_id, EventLog("")), self._stored.pop(job_id, 0)
        return lambda: EventBatch(job_id, log.epoch, place, log.since(place))

    async def close(self) -> None:
        """Stop storing."""
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
            EventBatch(job_id, log.epoch, self._stored[job_id], log.since(self._stored[job_id]))
            for job_id, log in self._logs.items()
            if len(log) > self._stored[job_id]
        ]
        if not batches:
            return
        try:
            await asyncio.shield(asyncio.to_thread(self._register.append, batches))
        except CiteloomError as error:
            _log.warning("Events are not stored for the other servers yet: %s", error.message)
            self._filled.set()
            return
        for batch in batches:
            self._stored[batch.job_id] = batch.first + len(batch.events)


class JobChanges:
    """Wakes those who wait for events of a job; used from one event loop."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    def announce(self, job_id: str) -> None:
        """Wake all who wait for this job."""
        for event in self._waiting.get(job_id, ()):
            event.set()

    async def wait(self, job_id: str, event: asyncio.Event) -> None:
        """Wait for the job's next change or a timeout; each waiter needs its own `event`."""
        self._waiting[job_id].add(event)
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), _FOLLOW_TIMEOUT)
        event.clear()

    def leave(self, job_id: str, event: asyncio.Event) -> None:
        """Stop waiting."""
        self._waiting[job_id].discard(event)
        if not self._waiting[job_id]:
            del self._waiting[job_id]


async def follow(job: Job, register: ServerJobs, changes: JobChanges) -> None:
    """Copy a job's events to its log until it ends; the log restarts when another server takes over."""
    event = asyncio.Event()
    try:
        while not await _catch_up(job, register):
            await changes.wait(job.id, event)
    finally:
        changes.leave(job.id, event)


async def _catch_up(job: Job, register: ServerJobs) -> bool:
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
        _copy_end(job, page.events)
        job.log.extend(page.events)
        job.state = page.state
    if job.state in ACTIVE:
        return False
    job.log.close()
    return True


def _copy_end(job: Job, events: Sequence[tuple[str, str]]) -> None:
    for name, data in events:
        if name == "done":
            job.result = json.loads(data)["result"]
        elif name == "error":
            job.problem = json.loads(data)


class RunningJobs(Protocol):
    """The jobs of this server, as `JobRecovery` uses them."""

    changes: JobChanges

    @property
    def free(self) -> int: ...
    def busy(self) -> list[str]: ...
    def here(self, job_id: str) -> Job | None: ...
    async def stop(self, job_id: str) -> bool: ...


class JobRecovery:
    """Resumes jobs of servers that are gone, and stops jobs at the request of other servers.

    Works in the server's event loop; its listener may be called from any thread.

    Args:
        jobs: the jobs of this server.
        register: the jobs of all servers.
        resume: starts an orphaned job again.
        lost: set when this server was evicted.
    """

    def __init__(
        self,
        jobs: RunningJobs,
        register: ServerJobs,
        resume: Callable[[JobOrder], Awaitable[object]],
        lost: asyncio.Event,
    ) -> None:
        self._jobs = jobs
        self._register = register
        self._resume_order = resume
        self._lost = lost
        self._tasks: set[asyncio.Task[None]] = set()
        self._claiming = asyncio.Lock()

    def listener(self, loop: asyncio.AbstractEventLoop) -> Listener:
        """Callbacks for notifications from other servers."""

        def soon(work: Callable[[], object]) -> None:
            loop.call_soon_threadsafe(work)

        return Listener(
            changed=lambda job_id: soon(lambda: self._jobs.changes.announce(job_id)),
            stop=lambda jobs: soon(lambda: self._begin(self._stop(jobs))),
            orphans=lambda: soon(self._begin_claiming),
            lost=lambda: soon(self._lost.set),
        )

    async def claim_orphaned(self) -> None:
        """Resume unfinished jobs of servers that are gone, as many as fit here."""
        async with self._claiming:
            try:
                orders = await asyncio.to_thread(self._register.claim_orphaned, self._jobs.free, self._jobs.busy())
            except PausedError as error:  # the database is down, or this server was evicted
                _log.warning("Unfinished jobs are not looked for: %s", error.message)
                return
            for order in orders:
                await self._resume(order)

    async def close(self) -> None:
        """Cancel ongoing work."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begin_claiming(self) -> None:
        if not self._claiming.locked():
            self._begin(self.claim_orphaned())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self, jobs: Sequence[str]) -> None:
        for job_id in jobs:
            if (job := self._jobs.here(job_id)) is not None and not job.followed:
                await self._jobs.stop(job_id)

    async def _resume(self, order: JobOrder) -> None:
        try:
            await self._resume_order(order)
        except Exception as error:  # noqa: BLE001 - one that cannot be resumed must not keep the server from starting
            if lost_lease(error):
                return
            _log.warning("%s is not resumed: %s", order.id, error, exc_info=not isinstance(error, CiteloomError))
            if isinstance(error, PausedError) or http_status(error) in (429, 503):
                await asyncio.to_thread(self._register.release, order.id)
            else:
                await asyncio.to_thread(self._register.end, order.id, "failed", EventBatch(order.id, "", 0, ()))


def lost_connection(error: BaseException) -> bool:
    """Whether a lost connection caused the error without an eviction."""
    causes = list(_causes(error))
    lost = any(isinstance(each, ConnectionLostError) for each in causes)
    return lost and not any(isinstance(each, LeaseLostError) for each in causes)


def lost_lease(error: BaseException) -> bool:
    """Whether this server's eviction caused the error."""
    return any(isinstance(each, LeaseLostError) for each in _causes(error))


async def wait_for_database(register: ServerJobs) -> bool:
    """Wait for the database; returns whether it answers and still accepts this server."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _RESTART_TIMEOUT
    while loop.time() < until:
        try:
            await asyncio.to_thread(register.entry, "")
        except LeaseLostError:
            return False
        except CiteloomError:
            await asyncio.sleep(_POLL_INTERVAL)
        else:
            return True
    return False


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
