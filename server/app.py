"""The server as one ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

import uvicorn
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import Route

from ..api.homes import Home
from ..settings.config import Settings
from .guard import Guard
from .lifespan import served
from .mcp_transports import PATH, McpEndpoint
from .metrics import CountRequests, RequestCounts
from .pages import ask_page, html, library_page, runs_page, settings_page, sign_in_page, write_page
from .pages.html import handle_page_errors
from .problems import handle_problems
from .routes import (
    chat_completions,
    conversations,
    ingests,
    papers,
    runs,
    status,
    writing,
)
from .server_options import ServerOptions
from .server_state import open_state
from .tokens import Tokens

_CONNECTIONS: Final = 1024  # open at once
_GRACE: Final = 5  # seconds for open requests at the end; runs are paused
_DESCRIPTION = (
    "Answers and paper sections from a library, each cited sentence with the words it rests on. Long work is a run: "
    "a request that breaks off does not end it, and the same request joins or resumes it without paying twice."
)


def create_app(settings: Settings, home: Home, options: ServerOptions) -> FastAPI:
    """The application for one home; the library is opened when it starts and closed when it ends."""
    requests = RequestCounts()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with served(app, lambda: open_state(settings, home, options, requests)):
            yield

    app = FastAPI(
        title="Citeloom",
        version=version("citeloom"),
        description=_DESCRIPTION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        middleware=[
            Middleware(CountRequests, counts=requests),
            Middleware(Guard, options=options, tokens=Tokens(options.token)),
        ],
    )
    handle_problems(app)
    handle_page_errors(app)
    # `papers` comes last: a key may contain slashes, so that its routes match all paths below theirs.
    api = (
        conversations,
        runs,
        writing,
        ingests,
        status,
    )
    for router in (papers.search_router, *(module.router for module in api), papers.router, writing.questions):
        app.include_router(router, prefix="/api/v1")
    for page in (html, sign_in_page, ask_page, library_page, write_page, runs_page, settings_page):
        app.include_router(page.router)
    app.include_router(chat_completions.router)
    app.router.routes.append(Route(PATH, McpEndpoint()))
    return app


def uvicorn_config(app: FastAPI) -> uvicorn.Config:
    """The configuration for an application whose socket is bound already."""
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # what is asked is nobody else's business
        server_header=False,
        proxy_headers=False,  # or any program of this machine could claim another client's address
        ws="none",
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
    )
