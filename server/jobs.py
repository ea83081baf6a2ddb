"""Jobs: work that goes on when the request that started it breaks off, and when the server is killed and restarted."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import CiteloomError, PausedError
from .event_log import EventLog
from .job_register import JobOrder, JobRegister, NoRegister
from .problems import ServerError, problem_of

JobState = Literal["waiting", "working", "finished", "paused", "failed"]
Emit = Callable[[str, Mapping[str, Any]], None]
Work = Callable[[Emit], Awaitable[Mapping[str, Any]]]

_LATEST = 200  # ended jobs whose events stay in memory
_log = logging.getLogger("citeloom.server")


@dataclass(eq=False)
class Job:
    """One piece of work: its events, its state, and how it ended."""

    order: JobOrder
    log: EventLog
    state: JobState = "waiting"
    result: Mapping[str, Any] | None = None
    problem: dict[str, Any] | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        """The id of the run or conversation that the job works on; one of its own for an ingest."""
        return self.order.id

    @property
    def active(self) -> bool:
        """True while it waits or works."""
        return self.state in ("waiting", "working")

    async def ended(self) -> None:
        """Wait for the end, however the job ends; cancelling the wait leaves the job alone."""
        if self.task is not None:
            await asyncio.wait([self.task])


class Jobs:
    """All jobs of a server; used from its event loop."""

    def __init__(self, register: JobRegister | NoRegister, *, max_active: int, max_waiting: int) -> None:
        self._register = register
        self._slots = asyncio.Semaphore(max_active)
        self._max_jobs = max_active + max_waiting
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._closing = False

    def get(self, job_id: str) -> Job | None:
        """The latest job with this id that is still in memory."""
        return self._jobs.get(job_id)

    def active(self) -> list[Job]:
        """The jobs that wait or work."""
        return [job for job in self._jobs.values() if job.active]

    async def start(self, order: JobOrder, work: Work) -> Job:
        """Start a job, or join the active one with the same id.

        Raises `ServerError` with status 429 when too many wait, and 503 while the server shuts down.
        """
        running = self._jobs.get(order.id)
        if running is not None and running.active:
            return running
        if self._closing:
            raise ServerError(503, "The server is shutting down.", help="Ask again in a moment.", retry_after=5)
        if len(self.active()) >= self._max_jobs:
            raise ServerError(429, "The server is busy.", help="Try again when a run has ended.", retry_after=10)
        job = Job(order, EventLog(secrets.token_hex(4)))
        self._jobs[order.id] = job
        self._jobs.move_to_end(order.id)
        self._forget_oldest()
        await asyncio.to_thread(self._register.begin, order)
        job.task = asyncio.create_task(self._run(job, work), name=order.id)
        return job

    async def stop(self, job_id: str) -> Job | None:
        """Stop an active job; its run is paused, and what was paid for is kept."""
        job = self._jobs.get(job_id)
        if job is not None and job.active and job.task is not None:
            job.task.cancel("stopped")
            await job.ended()
        return job

    async def close(self) -> None:
        """Stop all jobs at the end of the server; they stay registered, so that the next server resumes them."""
        self._closing = True
        tasks = [job.task for job in self.active() if job.task is not None]
        for task in tasks:
            task.cancel("closing")
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, job: Job, work: Work) -> None:
        def emit(name: str, data: Mapping[str, Any]) -> None:
            job.log.append(name, data)

        try:
            async with self._slots:
                job.state = "working"
                job.result = await work(emit)
                job.state = "finished"
        except asyncio.CancelledError:
            job.state = "paused"
            emit("stopped", {"message": "Stopped. Completed calls are saved."})
        except Exception as error:  # noqa: BLE001 - the end of a task: reported to whoever reads its events
            if not isinstance(error, CiteloomError):
                _log.exception("Unexpected error in job %s", job.id)
            job.state = "paused" if isinstance(error, PausedError) else "failed"
            job.problem = problem_of(error)
            emit("error", job.problem)
        finally:
            job.log.close()
        if not self._closing:
            with suppress(Exception):  # at worst the next server resumes a job that has ended, which costs nothing
                await asyncio.to_thread(self._register.end, job.id)

    def _forget_oldest(self) -> None:
        ended = [job_id for job_id, job in self._jobs.items() if not job.active]
        for job_id in ended[: max(0, len(ended) - _LATEST)]:
            del self._jobs[job_id]
