"""Jobs: work that survives a broken request and a killed server.

A job belongs to one server. If several share a library, the register decides which; the others follow its events.
`JobRecovery` resumes jobs of servers that are gone.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..api.people import acting
from ..api.serving import EventBatch, JobEntry, JobOrder, Listener, ServerJobs
from ..errors import CiteloomError, PausedError
from .job import (
    STOPPED,
    EventLog,
    EventPublisher,
    Job,
    Work,
    as_text,
    claimed_key,
    follow,
    lost_connection,
    lost_lease,
    wait_for_database,
)
from .problems import ServerError, http_status, to_problem

_LATEST: Final = 200  # ended jobs whose events stay in memory
_MOST_TEXT: Final = 64 * 2**20  # characters of these events
_ATTEMPTS: Final = 5  # in case of lost connections
_STOP_TIMEOUT: Final = 15.0  # seconds for another server to stop a job
_PRIVATE: Final = ("run", "turn")  # kinds of jobs that only their person sees
_log = logging.getLogger("citeloom.server")


class Jobs:
    """All jobs of a server; used from its event loop."""

    def __init__(self, register: ServerJobs, *, max_active: int, max_waiting: int) -> None:
        self._register = register
        self._slots = asyncio.Semaphore(max_active)
        self._max_jobs = max_active + max_waiting
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._publisher = EventPublisher(register)
        self._closing = False

    def find_here(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def wake(self, job_id: str) -> None:
        """Check at once what another server did to a job."""
        if job_id in self._jobs:
            self._jobs[job_id].changed.set()

    def active(self) -> list[Job]:
        return [job for job in list(self._jobs.values()) if job.active and not job.followed]

    def busy(self) -> list[str]:
        """Ids of jobs that this server has not released yet."""
        return [job.id for job in self._jobs.values() if not job.followed and job.task and not job.task.done()]

    @property
    def free(self) -> int:
        return max(0, self._max_jobs - len(self.active()))

    def counts(self) -> Mapping[tuple[str, str], int]:
        return Counter((job.order.kind, job.state) for job in self.active())

    async def find(self, job_id: str) -> Job | None:
        """The latest job with this id on any server; starts following it if it is on another one."""
        job = self._jobs.get(job_id)
        if job is not None and not _visible(job.order):
            return None
        if not self._register.shared or (job is not None and job.active and not job.followed):
            return job
        entry = await asyncio.to_thread(self._register.entry, job_id)
        job = self._jobs.get(job_id)
        if entry is None or not _visible(entry.order):
            return job
        if job is not None and (job.active or job.log.epoch == entry.epoch):
            return job
        job = Job(entry.order, EventLog(entry.epoch), entry.state, followed=True)
        job.registered.set()
        self._remember(job)
        job.task = asyncio.create_task(follow(job, self._register), name=job_id)
        return job

    async def known(self) -> dict[str, JobEntry]:
        """Active and recently ended jobs of all servers, by id."""
        found = {job.id: job.entry() for job in self._jobs.values()}
        if self._register.shared:
            registered = {entry.order.id: entry for entry in await asyncio.to_thread(self._register.entries)}
            found |= {job_id: entry for job_id, entry in registered.items() if not self._works_on(job_id)}
        return {job_id: entry for job_id, entry in found.items() if _visible(entry.order)}

    async def active_entry(self, job_id: str) -> JobEntry | None:
        if self._works_on(job_id):
            return self._jobs[job_id].entry()
        entry = await asyncio.to_thread(self._register.entry, job_id)
        return entry if entry is not None and entry.active else None

    async def start(self, order: JobOrder, work: Work) -> Job:
        """Start a job, or join the active one with the same id.

        Raises `ServerError` with status 409 while another turn of the same conversation is active, 429 when too many
        jobs wait, and 503 while the server shuts down.
        """
        if person := acting.get():
            order = replace(order, request={**order.request, "person": person})
        if not self._works_on(order.id):
            if self._closing:
                raise ServerError(503, "The server is shutting down.", help="Ask again in a moment.", retry_after=5)
            if not self.free:
                raise ServerError(429, "The server is busy.", help="Try again when a run has ended.", retry_after=10)
            known = self._jobs.get(order.id)
            if known is not None and known.active and known.task is not None:  # followed: the register decides
                known.task.cancel("started here")
                await asyncio.wait([known.task])
        job = self._jobs[order.id] if self._works_on(order.id) else self._begin(order, work)
        await job.registered.wait()  # jobs that a client knows must survive a kill
        if job.refused is not None:
            raise job.refused
        if order.kind in ("turn", "table") and {**job.order.request, "person": ""} != {**order.request, "person": ""}:
            busy = "is still answering another question" if order.kind == "turn" else "is being made with other columns"
            raise ServerError(409, f"{order.id} {busy}.", help="Wait for it to finish, or stop it first.")
        return job

    def _begin(self, order: JobOrder, work: Work) -> Job:
        known = self._jobs.get(order.id)
        if known is not None and known.active:  # keep the log for its current readers
            job = known
            job.order, job.followed, job.registered, job.refused = order, False, asyncio.Event(), None
        else:
            job = Job(order, EventLog(secrets.token_hex(4)))
            self._remember(job)
        job.state = "waiting"
        job.task = asyncio.create_task(self._run(job, work), name=order.id)
        return job

    async def stop(self, job_id: str) -> bool:
        """Stop a job; returns whether it was active. Its run is paused, and paid answers are kept."""
        if not self._works_on(job_id):
            return await self._stop_elsewhere(job_id)
        job = self._jobs[job_id]
        assert job.task is not None
        await job.registered.wait()  # a task cancelled before its first step would never close its log
        if job.followed:
            return await self._stop_elsewhere(job_id)
        job.task.cancel("stopped")
        await job.ended()
        return True

    async def _stop_elsewhere(self, job_id: str) -> bool:
        if await self.active_entry(job_id) is None:
            return False
        await asyncio.to_thread(self._register.request_stop, job_id)
        job = await self.find(job_id)
        if job is not None:
            try:
                await asyncio.wait_for(job.ended(), _STOP_TIMEOUT)
            except TimeoutError:
                waiting = f"{job_id}: its server has not stopped it yet."
                raise ServerError(503, waiting, help="It will be stopped.", retry_after=5) from None
        return True

    async def require_idle(self, job_id: str) -> None:
        """Raise `ServerError` with status 409 while a job with this id is active."""
        if await self.active_entry(job_id) is not None:
            raise ServerError(409, f"{job_id} is active.", help="Stop it first.")

    def forget(self, job_id: str) -> None:
        job = self._jobs.get(job_id)
        if job is not None and not job.active:
            del self._jobs[job_id]

    async def close(self) -> None:
        """Stop all jobs on shutdown; they stay registered, so that another server can resume them."""
        self._closing = True
        for job in self.active():
            await job.registered.wait()
        tasks = [job.task for job in self._jobs.values() if job.task is not None and not job.task.done()]
        for task in tasks:
            task.cancel("closing")
        if tasks:
            await asyncio.wait(tasks)
        for job in self._jobs.values():
            job.log.close()
        await self._publisher.close()

    def _works_on(self, job_id: str) -> bool:
        job = self._jobs.get(job_id)
        return job is not None and job.active and not job.followed

    async def _run(self, job: Job, work: Work) -> None:
        try:
            await self._carry_out(job, work)
        except asyncio.CancelledError:
            job.state = "paused"
            if not self._closing:
                await self._end(job, "stopped", STOPPED)
            elif not self._register.shared:
                job.log.append("stopped", STOPPED)
        except Exception as error:  # noqa: BLE001 - the end of a task: reported to whoever reads its events
            if not isinstance(error, CiteloomError):
                _log.exception("Unexpected error in job %s", job.id)
            job.state = "paused" if isinstance(error, PausedError) else "failed"
            job.problem = to_problem(error)
            if not lost_lease(error):  # if lost, another server continues
                await self._end(job, "error", job.problem)
        finally:
            job.registered.set()
            if not job.followed:
                job.log.close()

    async def _carry_out(self, job: Job, work: Work) -> None:
        """Work until the end; after a lost database connection, retry from the last step."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._attempt(job, work)
            except Exception as error:
                if not job.registered.is_set():
                    job.refused = error
                again = job.registered.is_set() and self._register.shared and lost_connection(error)
                if not again or attempt == _ATTEMPTS or not await wait_for_database(self._register):
                    raise
                await self._publisher.detach(job.id)
                _log.warning("Job %s lost the database and is resumed.", job.id)
            else:
                return

    async def _attempt(self, job: Job, work: Work) -> None:
        epoch = secrets.token_hex(4) if self._register.shared else job.log.epoch
        other = await asyncio.to_thread(self._register.begin, job.order, epoch, claimed_key.get())
        if other is not None:  # the job is in fact another server's
            job.order, job.state, job.followed = other.order, other.state, True
            job.log.restart(other.epoch)
            job.registered.set()
            job.task = asyncio.create_task(follow(job, self._register), name=job.id)
            return
        if self._register.shared:
            job.log.restart(epoch)
            self._publisher.open(job.id, job.log)
        job.registered.set()
        final: list[Mapping[str, Any]] = []

        def emit(name: str, data: Mapping[str, Any]) -> None:
            if name == "done":  # sent last, since readers may ask again at once
                final.append(data)
            else:
                job.log.append(name, data)
                self._publisher.notify()

        # Shows at once that the job was accepted, even on a busy server.
        stage, text = ("waiting", "Waiting for other work to end.") if self._slots.locked() else ("started", "Started.")
        emit("stage", {"source": "citeloom", "kind": "stage", "stage": stage, "text": text})
        async with self._slots:
            job.state = "working"
            job.result = await work(emit)
        job.state = "finished"
        await self._end(job, "done", final[-1] if final else {"kind": "done", "result": job.result})

    async def _end(self, job: Job, name: str, data: Mapping[str, Any]) -> None:
        """Register a job's end, then tell its readers."""
        last = (name, as_text(data))
        try:
            await asyncio.shield(self._register_end(job, last))
        except Exception as error:  # noqa: BLE001 - at worst a server resumes a job that has ended, which costs nothing
            unexpected = not isinstance(error, CiteloomError)
            _log.warning("The end of job %s is not registered: %s", job.id, error, exc_info=unexpected)
        job.log.extend([last])

    async def _register_end(self, job: Job, last: tuple[str, str]) -> None:
        batch = EventBatch(job.id, job.log.epoch, len(job.log), [last])
        if self._register.shared and job.registered.is_set():
            rest = (await self._publisher.detach(job.id))()
            batch = EventBatch(job.id, rest.epoch, rest.first, [*rest.events, last])
        await asyncio.to_thread(self._register.end, job.id, job.state, batch)

    def _remember(self, job: Job) -> None:
        self._jobs[job.id] = job
        self._jobs.move_to_end(job.id)
        ended = [item for item in self._jobs.values() if not item.active]
        text = sum(item.log.size for item in ended)
        for place, item in enumerate(ended):  # drops the oldest jobs; the register still knows how they ended
            if len(ended) - place <= _LATEST and text <= _MOST_TEXT:
                return
            text -= item.log.size
            del self._jobs[item.id]


def _visible(order: JobOrder) -> bool:
    return not (person := acting.get()) or order.kind not in _PRIVATE or order.request.get("person") == person


@dataclass(slots=True)
class JobRecovery:
    """Resumes jobs of dead servers with `resume`, stops jobs for other servers, and sets `lost` on an eviction."""

    jobs: Jobs
    register: ServerJobs
    resume: Callable[[JobOrder], Awaitable[object]]
    lost: asyncio.Event
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _claiming: asyncio.Lock = field(default_factory=asyncio.Lock)

    def listener(self, loop: asyncio.AbstractEventLoop) -> Listener:
        """Callbacks for notifications from other servers."""

        def call_soon(work: Callable[..., object], *given: object) -> None:
            loop.call_soon_threadsafe(work, *given)

        def claim() -> None:
            if not self._claiming.locked():
                self._begin(self.claim_orphaned())

        return Listener(
            changed=lambda job_id: call_soon(self.jobs.wake, job_id),
            stop=lambda jobs: call_soon(lambda: self._begin(self._stop(jobs))),
            orphans=lambda: call_soon(claim),
            lost=lambda: call_soon(self.lost.set),
        )

    async def claim_orphaned(self) -> None:
        """Resume unfinished jobs of servers that are gone, as many as fit here."""
        async with self._claiming:
            try:
                orders = await asyncio.to_thread(self.register.claim_orphaned, self.jobs.free, self.jobs.busy())
            except PausedError as error:  # the database is down, or this server was evicted
                _log.warning("Unfinished jobs are not looked for: %s", error.message)
                return
            for order in orders:
                await self._resume(order)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self, jobs: Sequence[str]) -> None:
        for job_id in jobs:
            if (job := self.jobs.find_here(job_id)) is not None and not job.followed:
                await self.jobs.stop(job_id)

    async def _resume(self, order: JobOrder) -> None:
        try:
            await self.resume(order)
        except Exception as error:  # noqa: BLE001 - a job that cannot be resumed must not keep the server from starting
            if lost_lease(error):
                return  # another server continues
            _log.warning("%s is not resumed: %s", order.id, error, exc_info=not isinstance(error, CiteloomError))
            if isinstance(error, PausedError) or http_status(error) in (429, 503):
                await asyncio.to_thread(self.register.release, order.id)
            else:
                await asyncio.to_thread(self.register.end, order.id, "failed", EventBatch(order.id, "", 0, ()))
