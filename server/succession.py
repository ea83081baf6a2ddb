"""Takes up the jobs of servers that are gone, and passes on what the others ask of this one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import CiteloomError, PausedError
from ..stores.backends import Listener, ServerJobs
from ..stores.server_jobs import EventBatch, JobOrder
from .database_loss import lost_lease
from .problems import status_of

if TYPE_CHECKING:
    from .server_state import ServerState

_log = logging.getLogger("citeloom.server")


class Successor:
    """Works in the server's event loop; its listener may be called from any thread."""

    def __init__(self, state: ServerState, register: ServerJobs) -> None:
        self._state = state
        self._register = register
        self._tasks: set[asyncio.Task[None]] = set()
        self._taking = asyncio.Lock()

    def listener(self, loop: asyncio.AbstractEventLoop) -> Listener:
        """What is to be done about news of the other servers."""

        def soon(work: Callable[[], object]) -> None:
            loop.call_soon_threadsafe(work)

        return Listener(
            changed=lambda job_id: soon(lambda: self._state.jobs.changes.heard(job_id)),
            stop=lambda jobs: soon(lambda: self._begin(self._stop, jobs)),
            orphans=lambda: soon(lambda: self._begin(self._take_up, ())),
            lost=lambda: soon(self._state.lost.set),
        )

    async def take_up(self) -> None:
        """Resume as many unfinished jobs of servers that are gone as this one has room for."""
        async with self._taking:
            jobs = self._state.jobs
            try:
                orders = await asyncio.to_thread(self._register.claim_orphaned, jobs.free, jobs.busy())
            except PausedError as error:  # the database is away, or this server was taken for dead
                _log.warning("Unfinished jobs are not looked for: %s", error.message)
                return
            for order in orders:
                await self._resume(order)

    async def close(self) -> None:
        """Stop doing so."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, work: Callable[[Sequence[str]], object], jobs: Sequence[str]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work(jobs))  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take_up(self, _: Sequence[str]) -> None:
        if not self._taking.locked():
            await self.take_up()

    async def _stop(self, jobs: Sequence[str]) -> None:
        for job_id in jobs:
            if (job := self._state.jobs.here(job_id)) is not None and not job.followed:
                await self._state.jobs.stop(job_id)

    async def _resume(self, order: JobOrder) -> None:
        try:
            if order.kind == "ingest":
                await self._state.ingests.start(order)
            else:
                await self._state.runs.resume_order(order)
        except Exception as error:  # noqa: BLE001 - one that cannot be resumed must not keep the server from starting
            if lost_lease(error):
                return
            _log.warning("%s is not resumed: %s", order.id, error, exc_info=not isinstance(error, CiteloomError))
            if isinstance(error, PausedError) or status_of(error) in (429, 503):
                await asyncio.to_thread(self._register.release, order.id)
            else:
                await asyncio.to_thread(self._register.end, order.id, "failed", EventBatch(order.id, "", 0, ()))
