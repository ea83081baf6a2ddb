"""The server as an ASGI application; opens its state on startup, and again after an eviction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from typing import Final

import uvicorn
from fastapi import Depends, FastAPI
from prometheus_client import CollectorRegistry
from starlette.middleware import Middleware
from starlette.routing import Route

from ..api.homes import Home
from ..errors import CiteloomError
from ..settings.config import Settings
from . import shared_calls
from .access import MCP, People, require_access, required_rights
from .guard import Guard
from .mcp_server import McpEndpoint, mcp_over_http
from .problems import handle_problems
from .routes import (
    chat_completions,
    conversation_routes as conversations,
    html,
    paper_routes as papers,
    people_page,
    run_routes as runs,
    sign_in_page,
    status_routes as status,
    table_routes as tables,
    writing_routes as writing,
)
from .server_options import ServerOptions, Tokens
from .server_state import ServerState, open_state

OpenState = Callable[[], AbstractAsyncContextManager[ServerState]]
_THREADS: Final = 32  # for blocking calls; a writer waiting for SQLite must not hold up the others
_REJOIN_INTERVAL: Final = 2.0  # seconds between attempts to rejoin the other servers
_log = logging.getLogger("citeloom.server")
_CONNECTIONS: Final = 1024  # open at once
_GRACE: Final = 5  # seconds for open requests at shutdown; runs are paused
_DESCRIPTION = (
    "Answers and paper sections from a library, each cited sentence with the words it rests on. Long work is a run: "
    "a dropped request does not end it, and the same request joins or resumes it without paying twice."
)


def create_app(settings: Settings, home: Home, options: ServerOptions) -> FastAPI:
    """Create the application for a home; the library is opened on startup and closed on shutdown."""
    answered = CollectorRegistry()
    people = People(home.accounts())
    people.update_in_use()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with keep_state_open(app, lambda: open_state(settings, home, options)):
            yield

    app = FastAPI(
        title="Citeloom",
        version=version("citeloom"),
        description=_DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # their pages load external scripts
        redoc_url=None,
        lifespan=lifespan,
        dependencies=[Depends(require_access)],
        middleware=[Middleware(Guard, options, Tokens(options.token), people, answered)],
    )
    app.state.answered, app.state.people = answered, people
    handle_problems(app)
    html.handle_page_errors(app)
    # `papers` comes last: a key may contain slashes, so that its routes match all paths below theirs.
    api = (conversations, runs, writing, status, tables, shared_calls)
    library = (papers.search_router, status.memory_router, papers.ingest_router)
    for router in (*library, *(module.router for module in api), papers.router, writing.questions):
        app.include_router(router, prefix="/api/v1")
    pages = [module.pages for module in (conversations, papers, writing, tables, runs, status)]
    for router in (html.router, sign_in_page.router, people_page.router, *pages, chat_completions.router):
        app.include_router(router)
    app.router.routes.append(Route(MCP, McpEndpoint()))
    app.state.needs = required_rights(app)
    return app


def uvicorn_config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # questions are private
        server_header=False,
        proxy_headers=False,  # else any local program could claim another client's address
        ws="none",
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
    )


@asynccontextmanager
async def keep_state_open(app: FastAPI, open_state: OpenState) -> AsyncIterator[None]:
    """Keep `app.state.server` open for the block; None while rejoining the other servers."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "citeloom"))
    app.state.server = app.state.mcp = None
    opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    ending = asyncio.Event()
    keeping = asyncio.create_task(_keep(app, open_state, opened, ending), name="server state")
    await opened
    try:
        yield
    finally:
        ending.set()
        await keeping


async def _keep(app: FastAPI, open_state: OpenState, opened: asyncio.Future[None], ending: asyncio.Event) -> None:
    while not ending.is_set():
        try:
            async with (
                open_state() as state,
                mcp_over_http(state.session, state.runs, state.options, stateless=state.member.jobs.shared) as sessions,
            ):
                app.state.server, app.state.mcp = state, sessions
                if not opened.done():
                    opened.set_result(None)
                waiting = [asyncio.create_task(event.wait()) for event in (ending, state.lost)]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in waiting:
                    task.cancel()
                if not ending.is_set():
                    _log.warning("This server was evicted and its jobs reassigned; it joins the others again.")
                    app.state.server = app.state.mcp = None
        except Exception as error:
            app.state.server = app.state.mcp = None
            if not opened.done():
                opened.set_exception(error)
                return
            if ending.is_set():
                raise
            unexpected = not isinstance(error, CiteloomError)
            _log.warning("The server cannot join the others yet: %s", error, exc_info=unexpected)
            await asyncio.wait([asyncio.create_task(ending.wait())], timeout=_REJOIN_INTERVAL)
