"""What the routes share: the open library, the jobs, the limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import Depends, Request

from ..config import Settings
from ..errors import CiteloomError
from ..graph.session import Session, create_session
from ..runs.conversation import delete_expired
from ..stores.home import Home
from .idempotency import IdempotencyKeys
from .ingest_jobs import IngestJobs
from .job_register import JobRegister
from .jobs import Jobs
from .metrics import RequestCounts
from .run_jobs import RunJobs
from .server_options import ServerOptions
from .stream_count import StreamCount
from .tokens import Tokens
from .uploaded_files import tidy_abandoned
from .uploaded_plots import tidy_plots

_RENDERERS: Final = 2  # of page images at once
_HOUR: Final = 3600
_THREADS: Final = 32  # for what blocks; a writer that waits for SQLite must not hold up everybody else
_log = logging.getLogger("citeloom.server")


@dataclass(frozen=True)
class ServerState:
    """One server's parts, for as long as it runs."""

    options: ServerOptions
    session: Session
    register: JobRegister
    jobs: Jobs
    runs: RunJobs
    streams: StreamCount
    tokens: Tokens
    ingests: IngestJobs
    keys: IdempotencyKeys
    requests: RequestCounts
    renderers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_RENDERERS))


@asynccontextmanager
async def open_state(
    settings: Settings, home: Home, options: ServerOptions, requests: RequestCounts
) -> AsyncIterator[ServerState]:
    """Open the library and resume what an earlier server left unfinished; stop all jobs at the end.

    Raises `InputError` for a home or settings that cannot be used.
    """
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "citeloom"))
    session = await asyncio.to_thread(create_session, settings, home)
    try:
        register = await asyncio.to_thread(JobRegister, home.server)
        jobs = Jobs(register, max_active=options.max_active, max_waiting=options.max_waiting)
        state = ServerState(
            options,
            session,
            register,
            jobs,
            RunJobs(session, jobs),
            StreamCount(options.max_streams),
            Tokens(options.token),
            IngestJobs(session, jobs),
            IdempotencyKeys.of(register),
            requests,
        )
        await _resume_unfinished(state)
        active = {job.id for job in jobs.active()}
        await asyncio.to_thread(tidy_abandoned, session.library, active)
        await asyncio.to_thread(tidy_plots, home)
        expiry = asyncio.create_task(_delete_expired(state))
        try:
            yield state
        finally:
            expiry.cancel()
            await jobs.close()
    finally:
        await asyncio.to_thread(session.close)


async def _delete_expired(state: ServerState) -> None:
    """Delete expired conversations now and every hour."""
    days = state.session.settings.conversation_days
    while days is not None:
        try:
            await delete_expired(state.session.home, days)
        except CiteloomError as error:
            _log.warning("Expired conversations are not deleted: %s", error)
        await asyncio.sleep(_HOUR)


async def _resume_unfinished(state: ServerState) -> None:
    for order in await asyncio.to_thread(state.register.unfinished):
        try:
            if order.kind == "ingest":
                await state.ingests.start(order)
            else:
                await state.runs.resume_order(order)
        except Exception as error:  # noqa: BLE001 - one that cannot be resumed must not keep the server from starting
            _log.warning("%s is not resumed: %s", order.id, error, exc_info=not isinstance(error, CiteloomError))
            await asyncio.to_thread(state.register.end, order.id)


def _state_of(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


StateOf = Annotated[ServerState, Depends(_state_of)]
