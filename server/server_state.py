"""What the routes share: the open library, the jobs, the limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from ..config import Settings
from ..errors import CiteloomError
from ..graph.session import Session, create_session
from ..runs.conversation import delete_expired
from ..stores.home import Home
from .job_register import JobRegister
from .jobs import Jobs
from .run_jobs import RunJobs
from .server_options import ServerOptions
from .stream_count import StreamCount
from .tokens import Tokens

_RENDERERS = 2  # of page images at once
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
    renderers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_RENDERERS))


@asynccontextmanager
async def open_state(settings: Settings, home: Home, options: ServerOptions) -> AsyncIterator[ServerState]:
    """Open the library and resume what an earlier server left unfinished; stop all jobs at the end.

    Raises `InputError` for a home or settings that cannot be used.
    """
    session = await asyncio.to_thread(create_session, settings, home)
    try:
        register = await asyncio.to_thread(JobRegister, home.server)
        jobs = Jobs(register, max_active=options.max_active, max_waiting=options.max_waiting)
        runs = RunJobs(session, jobs)
        state = ServerState(
            options, session, register, jobs, runs, StreamCount(options.max_streams), Tokens(options.token)
        )
        if settings.conversation_days is not None:
            await delete_expired(home, settings.conversation_days)
        await _resume_unfinished(state)
        try:
            yield state
        finally:
            await jobs.close()
    finally:
        await asyncio.to_thread(session.close)


async def _resume_unfinished(state: ServerState) -> None:
    for order in await asyncio.to_thread(state.register.unfinished):
        try:
            await state.runs.resume_order(order)
        except CiteloomError as error:
            _log.warning("%s is not resumed: %s", order.id, error)
            await asyncio.to_thread(state.register.end, order.id)


def _state_of(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


StateOf = Annotated[ServerState, Depends(_state_of)]
