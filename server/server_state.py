"""State shared by the routes: open library, jobs, limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import Depends, Request

from ..api import conversation, homes, people
from ..api.serving import JobOrder, ServerRegistry, Session, open_session
from ..errors import CiteloomError
from ..settings.config import Settings
from .ingest_jobs import IngestJobs
from .job import Job
from .jobs import JobRecovery, Jobs
from .problems import ServerError
from .run_jobs import Orders, RunJobs
from .server_options import ServerOptions, Tokens
from .uploaded_files import tidy_plots

_RENDERERS: Final = 2  # concurrent page images
_HOUR: Final = 3600
_log = logging.getLogger("citeloom.server")


class StreamCount:
    def __init__(self, most: int) -> None:
        self._most = most
        self.open_now = 0

    def require_free(self) -> None:
        if self.open_now >= self._most:
            raise ServerError(429, "Too many event streams are open.", help="Close one first.", retry_after=5)

    @contextmanager
    def open(self) -> Iterator[None]:
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
    accounts: people.Accounts
    ingests: IngestJobs
    member: ServerRegistry
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    renderers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_RENDERERS))


@asynccontextmanager
async def open_state(settings: Settings, home: homes.Home, options: ServerOptions) -> AsyncIterator[ServerState]:
    """Open the library and resume unfinished jobs of earlier servers; stop all jobs at the end.

    Raises `InputError` for an unusable home or settings, or a folder used by another server.
    """
    member = await asyncio.to_thread(lambda: home.prepare().join_servers(options.address))
    try:
        session = await asyncio.to_thread(open_session, settings, member.home)
        try:
            async with _serving(session, member, options) as state:
                yield state
        finally:
            await asyncio.to_thread(session.close)
    finally:
        await asyncio.to_thread(member.leave)


@asynccontextmanager
async def _serving(session: Session, member: ServerRegistry, options: ServerOptions) -> AsyncIterator[ServerState]:
    tokens, orders = Tokens(options.token), Orders(member.endings, member.locks)
    jobs = Jobs(member.jobs, max_active=options.max_active, max_waiting=options.max_waiting)
    state = ServerState(
        options=options,
        session=session,
        jobs=jobs,
        orders=orders,
        runs=RunJobs(session, jobs, orders),
        streams=StreamCount(options.max_streams),
        tokens=tokens,
        accounts=member.home.accounts(),
        ingests=IngestJobs(session, jobs, member.uploads),
        member=member,
    )
    if tokens.needed and not await asyncio.to_thread(state.accounts.people):  # the sessions of an earlier token end
        await asyncio.to_thread(lambda: state.accounts.end_other_sessions(tokens.fingerprint))

    async def resume(order: JobOrder) -> Job:
        person = people.acting.set(str(order.request.get("person", "")))
        try:
            return await (state.ingests.start if order.kind == "ingest" else state.runs.resume_order)(order)
        finally:
            people.acting.reset(person)

    async def tidy_hourly() -> None:
        while True:
            await asyncio.sleep(_HOUR)
            try:
                await _tidy(state)
            except CiteloomError as error:
                _log.warning("Unused uploads and expired conversations are not deleted yet: %s", error)

    recovery = JobRecovery(state.jobs, member.jobs, resume, state.lost)
    await recovery.claim_orphaned()
    await _tidy(state)
    await asyncio.to_thread(member.watch, recovery.listener(asyncio.get_running_loop()))
    expiry = asyncio.create_task(tidy_hourly())
    try:
        yield state
    finally:
        expiry.cancel()
        await recovery.close()
        await state.jobs.close()
        await asyncio.to_thread(state.orders.close)


async def _tidy(state: ServerState) -> None:
    await state.ingests.tidy()
    await asyncio.to_thread(tidy_plots, state.session.home)
    if (days := state.session.settings.conversation_days) is None:
        return
    for entry in await conversation.expired_conversations(state.session.home, days):
        try:
            await state.runs.delete_conversation(entry.thread_id)
        except CiteloomError as error:
            _log.warning("An expired conversation is not deleted yet: %s", error)


def get_state(request: Request) -> ServerState:
    """The state of the server that got a request; raises `ServerError` while it rejoins the other servers."""
    state: ServerState | None = request.app.state.server
    if state is None:
        raise ServerError(503, "The server is rejoining the others.", help="Ask again in a moment.", retry_after=2)
    return state


StateOf = Annotated[ServerState, Depends(get_state)]


async def read_as_owner(thread_id: str, state: StateOf) -> str:
    """Whose conversation is read, if it is shared with who asks: its owner acts for the rest of the request."""
    if owner := await asyncio.to_thread(people.sharing_owner, state.session.home, thread_id):
        people.acting.set(owner)
    return owner


# For requests that read a conversation and do nothing else.
SharingOwner = Annotated[str, Depends(read_as_owner)]
