"""Lets any server of a library stream and await any job: publishes events of its own jobs, follows those of others."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from weakref import WeakValueDictionary

from ..api import serving
from ..errors import CiteloomError, causes
from .job import EventLog, Job

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

    async def last(self, job_id: str) -> Callable[[], serving.EventBatch]:
        """Stop storing a job's events; the returned function gives the unstored ones, including later ones."""
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
        self._next: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()

    def announce(self, job_id: str) -> None:
        if (event := self._next.pop(job_id, None)) is not None:
            event.set()

    def next(self, job_id: str) -> asyncio.Event:
        """What the job's next change sets; take it before looking at the job, or a change is missed."""
        return self._next.setdefault(job_id, asyncio.Event())


async def follow(job: Job, register: serving.ServerJobs, changes: JobChanges) -> None:
    """Copy a job's events to its log until it ends; the log restarts when another server takes over."""
    changed = changes.next(job.id)
    while not await _catch_up(job, register):
        with suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), _FOLLOW_TIMEOUT)
        changed = changes.next(job.id)


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
    lost = any(isinstance(each, serving.ConnectionLostError) for each in causes(error))
    return lost and not lost_lease(error)


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
