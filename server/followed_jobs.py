"""Jobs of other servers: their events are copied into a log here, so that any server streams and awaits them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ..errors import CiteloomError
from ..stores.backends import ServerJobs
from ..stores.server_jobs import ACTIVE
from .job import Job

_LOOK: Final = 2.0  # seconds without a notification
_log = logging.getLogger("citeloom.server")


class Changes:
    """Wakes those who wait for events of a job; used from one event loop."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

    def heard(self, job_id: str) -> None:
        """Wake all who wait for this job."""
        for event in self._waiting.get(job_id, ()):
            event.set()

    async def wait(self, job_id: str, event: asyncio.Event) -> None:
        """Wait for the job's next change, at most until it is time to look anyway; `event` is the waiter's own."""
        self._waiting[job_id].add(event)
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), _LOOK)
        event.clear()

    def leave(self, job_id: str, event: asyncio.Event) -> None:
        """Wait no more."""
        self._waiting[job_id].discard(event)
        if not self._waiting[job_id]:
            del self._waiting[job_id]


async def follow(job: Job, register: ServerJobs, changes: Changes) -> None:
    """Copy the events of a job into its log until it ends; a job that another server takes up restarts the log."""
    event = asyncio.Event()
    try:
        while not await _caught_up(job, register):
            await changes.wait(job.id, event)
    finally:
        changes.leave(job.id, event)


async def _caught_up(job: Job, register: ServerJobs) -> bool:
    """Copy what is new; returns whether the job has ended."""
    try:
        page = await asyncio.to_thread(register.events, job.id, job.log.epoch, len(job.log))
    except CiteloomError as error:
        _log.warning("Job %s cannot be followed: %s", job.id, error.message)
        return False
    if page is None:
        job.state = "paused"
    else:
        job.log.restart(page.epoch)
        _note_end(job, page.events)
        job.log.extend(page.events)
        job.state = page.state
    if job.state in ACTIVE:
        return False
    job.log.close()
    return True


def _note_end(job: Job, events: Sequence[tuple[str, str]]) -> None:
    for name, data in events:
        if name == "done":
            job.result = json.loads(data)["result"]
        elif name == "error":
            job.problem = json.loads(data)
