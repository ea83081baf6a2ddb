"""Opens the parts of a server when it starts, and again when the other servers took it for dead."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from fastapi import FastAPI

from ..errors import CiteloomError
from .mcp_transports import mcp_over_http
from .server_state import ServerState

OpenState = Callable[[], AbstractAsyncContextManager[ServerState]]
_THREADS: Final = 32  # for what blocks; a writer that waits for SQLite must not hold up everybody else
_PAUSE: Final = 2.0  # seconds until the next try to join the other servers again
_log = logging.getLogger("citeloom.server")


@asynccontextmanager
async def served(app: FastAPI, open_state: OpenState) -> AsyncIterator[None]:
    """Keep `app.state.server` open for the block; None while it joins the other servers again."""
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
                mcp_over_http(state.session, state.runs, state.options, stateless=state.shared) as sessions,
            ):
                app.state.server, app.state.mcp = state, sessions
                if not opened.done():
                    opened.set_result(None)
                await _either(ending, state.lost)
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
            _log.warning(
                "The server cannot join the others yet: %s", error, exc_info=not isinstance(error, CiteloomError)
            )
            await asyncio.wait([asyncio.create_task(ending.wait())], timeout=_PAUSE)


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    tasks = [asyncio.create_task(event.wait()) for event in (first, second)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
