"""Stores the events of this server's jobs for the other servers: in batches, at most ten times a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ..errors import CiteloomError
from ..stores.backends import ServerJobs
from ..stores.server_jobs import EventBatch
from .event_log import EventLog

_PAUSE: Final = 0.1  # seconds, in which the events of all jobs gather
_log = logging.getLogger("citeloom.server")


class EventSpool:
    """What of each log is stored; used from one event loop."""

    def __init__(self, register: ServerJobs) -> None:
        self._register = register
        self._logs: dict[str, EventLog] = {}
        self._stored: dict[str, int] = {}
        self._filled = asyncio.Event()
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def open(self, job_id: str, log: EventLog) -> None:
        """Store the events of a job from now on."""
        self._logs[job_id], self._stored[job_id] = log, 0
        if self._task is None:
            self._task = asyncio.create_task(self._write(), name="event spool")

    def note(self) -> None:
        """Have new events stored soon."""
        self._filled.set()

    async def last(self, job_id: str) -> Callable[[], EventBatch]:
        """End the storing of a job's events; gives those that were not stored, with whatever is added meanwhile."""
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
            await asyncio.sleep(_PAUSE)

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
