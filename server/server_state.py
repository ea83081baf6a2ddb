"""State shared by the routes: open library, jobs, limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import Depends, FastAPI, Request

from ..api.conversation import expired_conversations
from ..api.homes import Home
from ..api.serving import JobOrder, ServerRegistry, Session, Uploads, create_session, join_servers
from ..errors import CiteloomError
from ..settings.config import Settings
from .idempotency import IdempotencyKeys
from .ingest_jobs import IngestJobs
from .job import Job
from .jobs import JobRecovery, Jobs
from .metrics import RequestCounts
from .orders import Orders
from .problems import ServerError
from .run_jobs import RunJobs
from .server_options import BrowserSessions, ServerOptions, Tokens
from .uploaded_files import tidy_plots

_RENDERERS: Final = 2  # concurrent page images
_HOUR: Final = 3600
_log = logging.getLogger("citeloom.server")


class StreamCount:
    """Counts open event streams, up to a maximum."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.open_now = 0

    def require_free(self) -> None:
        """Raise `ServerError` with status 429 at the maximum."""
        if self.open_now >= self._most:
            raise ServerError(429, "Too many event streams are open.", help="Close one first.", retry_after=5)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Count a stream for as long as the block runs."""
        self.open_now += 1
        try:
            yield
        finally:
            self.open_now -= 1


@dataclass(frozen=True)
class ServerState:
    """A server's parts, valid until shutdown or eviction."""

    options: ServerOptions
    session: Session
    jobs: Jobs
    orders: Orders
    runs: RunJobs
    streams: StreamCount
    tokens: Tokens
    sessions: BrowserSessions
    ingests: IngestJobs
    keys: IdempotencyKeys
    uploads: Uploads
    requests: RequestCounts
    shared: bool  # among servers
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    renderers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_RENDERERS))


@asynccontextmanager
async def open_state(
    settings: Settings, home: Home, options: ServerOptions, requests: RequestCounts
) -> AsyncIterator[ServerState]:
    """Open the library and resume unfinished jobs of earlier servers; stop all jobs at the end.

    Raises `InputError` for an unusable home or settings, or a folder used by another server.
    """
    member = await asyncio.to_thread(join_servers, home)
    try:
        session = await asyncio.to_thread(create_session, settings, member.home)
        try:
            async with _serving(_state(session, member, options, requests), member) as state:
                yield state
        finally:
            await asyncio.to_thread(session.close)
    finally:
        await asyncio.to_thread(member.leave)


def _state(session: Session, member: ServerRegistry, options: ServerOptions, requests: RequestCounts) -> ServerState:
    tokens = Tokens(options.token)
    jobs = Jobs(member.jobs, max_active=options.max_active, max_waiting=options.max_waiting)
    orders = Orders(member.endings, member.locks)
    return ServerState(
        options,
        session,
        jobs,
        orders,
        RunJobs(session, jobs, orders),
        StreamCount(options.max_streams),
        tokens,
        BrowserSessions(tokens, member.sessions),
        IngestJobs(session, jobs, member.uploads),
        IdempotencyKeys(member.keys),
        member.uploads,
        requests,
        member.jobs.shared,
    )


@asynccontextmanager
async def _serving(state: ServerState, member: ServerRegistry) -> AsyncIterator[ServerState]:
    await state.sessions.end_outdated()
    recovery = JobRecovery(state.jobs, member.jobs, lambda order: _resume(state, order), state.lost)
    await recovery.claim_orphaned()
    await _tidy(state)
    await asyncio.to_thread(member.watch, recovery.listener(asyncio.get_running_loop()))
    expiry = asyncio.create_task(_tidy_hourly(state))
    try:
        yield state
    finally:
        expiry.cancel()
        await recovery.close()
        await state.jobs.close()
        await asyncio.to_thread(state.orders.close)


async def _resume(state: ServerState, order: JobOrder) -> Job:
    """Restart the job of an order; raises `CiteloomError` if impossible."""
    return await (state.ingests.start if order.kind == "ingest" else state.runs.resume_order)(order)


async def _tidy(state: ServerState) -> None:
    """Delete unreferenced uploads and expired conversations."""
    await state.ingests.tidy()
    await asyncio.to_thread(tidy_plots, state.session.home)
    if (days := state.session.settings.conversation_days) is not None:
        await _delete_expired(state, days)


async def _delete_expired(state: ServerState, days: int) -> None:
    for entry in await expired_conversations(state.session.home, days):
        try:
            await state.runs.delete_conversation(entry.thread_id)
        except CiteloomError as error:
            _log.warning("An expired conversation is not deleted yet: %s", error)


async def _tidy_hourly(state: ServerState) -> None:
    while True:
        await asyncio.sleep(_HOUR)
        try:
            await _tidy(state)
        except CiteloomError as error:
            _log.warning("Unused uploads and expired conversations are not deleted yet: %s", error)


def get_state(app: FastAPI) -> ServerState:
    """An app's server state; raises `ServerError` while rejoining the other servers."""
    state: ServerState | None = app.state.server
    if state is None:
        raise ServerError(503, "The server is rejoining the others.", help="Ask again in a moment.", retry_after=2)
    return state


def _state_of(request: Request) -> ServerState:
    return get_state(request.app)


StateOf = Annotated[ServerState, Depends(_state_of)]
