"""Jobs: work that goes on when the request that started it breaks off, and when the server is killed and restarted."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ..errors import CiteloomError, PausedError
from .event_log import EventLog
from .job_register import JobOrder, JobRegister, NoRegister
from .problems import ServerError, problem_of

JobState = Literal["waiting", "working", "finished", "paused", "failed"]
Emit = Callable[[str, Mapping[str, Any]], None]
Work = Callable[[Emit], Awaitable[Mapping[str, Any]]]

_LATEST: Final = 200  # ended jobs whose events stay in memory
_MOST_TEXT: Final = 64 * 2**20  # characters of their events
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
    registered: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    refused: Exception | None = None  # the error of a job that could not be registered

    @property
    def id(self) -> str:
        """The id of the run or conversation that the job works on; one of its own for an ingest."""
        return self.order.id

    @property
    def active(self) -> bool:
        """True while it waits or works."""
        return self.state in ("waiting", "working")

    def record(self) -> dict[str, Any]:
        """The state as JSON, for an ingest with its report."""
        record: dict[str, Any] = {"id": self.id, "kind": self.order.kind, "state": self.state, "events": len(self.log)}
        if self.problem is not None:
            record["problem"] = self.problem
        if self.order.kind == "ingest" and self.result is not None:
            record["result"] = self.result
        return record

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
        return [job for job in list(self._jobs.values()) if job.active]

    def counts(self) -> Mapping[tuple[str, str], int]:
        """The number of active jobs by kind and state."""
        return Counter((job.order.kind, job.state) for job in self.active())

    async def start(self, order: JobOrder, work: Work) -> Job:
        """Start a job, or join the active one with the same id.

        Raises `ServerError` with status 409 while another turn of the same conversation is active, 429 when too many
        jobs wait, and 503 while the server shuts down.
        """
        running = self._jobs.get(order.id)
        if running is not None and running.active:
            _require_same_turn(running.order, order)
            return running
        if self._closing:
            raise ServerError(503, "The server is shutting down.", help="Ask again in a moment.", retry_after=5)
        if len(self.active()) >= self._max_jobs:
            raise ServerError(429, "The server is busy.", help="Try again when a run has ended.", retry_after=10)
        job = Job(order, EventLog(secrets.token_hex(4)))
        self._jobs[order.id] = job
        self._jobs.move_to_end(order.id)
        self._forget_oldest()
        job.task = asyncio.create_task(self._run(job, work), name=order.id)
        await job.registered.wait()  # once a client knows of the job, it outlives a kill
        if job.refused is not None:
            raise job.refused
        return job

    async def stop(self, job_id: str) -> bool:
        """Stop a job, and return whether it was active; its run is paused, and what was paid for is kept."""
        job = self._jobs.get(job_id)
        if job is None or not job.active or job.task is None:
            return False
        await job.registered.wait()  # a task that is cancelled before its first step would never end its events
        job.task.cancel("stopped")
        await job.ended()
        return True

    def require_idle(self, job_id: str) -> None:
        """Raise `ServerError` with status 409 while a job with this id is active."""
        job = self._jobs.get(job_id)
        if job is not None and job.active:
            raise ServerError(409, f"{job_id} is active.", help="Stop it first.")

    def forget(self, job_id: str) -> None:
        """Drop an ended job with its events, whose run or conversation was deleted."""
        job = self._jobs.get(job_id)
        if job is not None and not job.active:
            del self._jobs[job_id]

    async def close(self) -> None:
        """Stop all jobs at the end of the server; they stay registered, so that the next server resumes them."""
        self._closing = True
        active = self.active()
        for job in active:
            await job.registered.wait()
        tasks = [job.task for job in active if job.task is not None]
        for task in tasks:
            task.cancel("closing")
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, job: Job, work: Work) -> None:
        try:
            await self._carry_out(job, work)
        except asyncio.CancelledError:
            job.state = "paused"
            job.log.append("stopped", {"message": "Stopped. Completed calls are saved."})
        except Exception as error:  # noqa: BLE001 - the end of a task: reported to whoever reads its events
            if not isinstance(error, CiteloomError):
                _log.exception("Unexpected error in job %s", job.id)
            job.state = "paused" if isinstance(error, PausedError) else "failed"
            job.problem = problem_of(error)
            job.log.append("error", job.problem)
        finally:
            job.registered.set()
            job.log.close()
        if not self._closing:
            with suppress(Exception):  # at worst the next server resumes a job that has ended, which costs nothing
                await asyncio.to_thread(self._register.end, job.id)

    async def _carry_out(self, job: Job, work: Work) -> None:
        try:
            await asyncio.to_thread(self._register.begin, job.order)
        except Exception as error:
            job.refused = error
            raise
        job.registered.set()
        async with self._slots:
            job.state = "working"
            result = await work(job.log.append)
            job.result, job.state = result, "finished"

    def _forget_oldest(self) -> None:
        """Drop the events of the oldest ended jobs; the registers still have how these ended."""
        ended = [job for job in self._jobs.values() if not job.active]
        text = sum(job.log.size for job in ended)
        for place, job in enumerate(ended):
            if len(ended) - place <= _LATEST and text <= _MOST_TEXT:
                return
            text -= job.log.size
            del self._jobs[job.id]


def _require_same_turn(running: JobOrder, order: JobOrder) -> None:
    if order.kind == "turn" and running.request != order.request:
        raise ServerError(
            409,
            f"Conversation {order.id} is still answering another question.",
            help="Wait for the answer, or stop it first.",
        )
