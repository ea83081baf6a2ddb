"""The MCP server over HTTP, inside the server's app, and over standard input and output, as a process of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from ..graph.session import Session
from ..stores.local.server_register import UnregisteredJobs
from .agent_tools import AgentLibrary
from .jobs import Jobs
from .mcp_server import mcp_server
from .problems import ServerError
from .run_jobs import RunJobs
from .server_options import ServerOptions

PATH: Final = "/mcp"
_ACTIVE: Final = 4  # runs that one agent has at once


@asynccontextmanager
async def mcp_over_http(
    library: AgentLibrary, options: ServerOptions, *, stateless: bool = False
) -> AsyncIterator[StreamableHTTPSessionManager]:
    """The sessions of MCP clients, as long as the server runs; the guard has checked the host and origin of each.

    A `stateless` one keeps no sessions: each request may reach another server.
    """
    manager = StreamableHTTPSessionManager(
        mcp_server(library),
        stateless=stateless,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=options.max_body,
        max_sessions=options.max_streams,
    )
    async with manager.run():
        yield manager


class McpEndpoint:
    """The ASGI app at `PATH`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the sessions, which are opened when the server starts."""
        sessions = scope["app"].state.mcp
        if sessions is None:
            raise ServerError(503, "The server joins the others again.", help="Ask again in a moment.", retry_after=2)
        await sessions.handle_request(scope, receive, send)


async def serve_stdio(session: Session) -> None:
    """Serve one agent until it closes standard input; unfinished runs are then paused."""
    jobs = Jobs(UnregisteredJobs(), max_active=_ACTIVE, max_waiting=_ACTIVE)
    server = mcp_server(AgentLibrary(session, RunJobs(session, jobs)))
    try:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    finally:
        await asyncio.shield(jobs.close())
