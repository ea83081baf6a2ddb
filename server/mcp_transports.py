"""MCP over HTTP, inside the server's app, and over standard input and output, in a process started by an agent."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from ..api.serving import ServerJobs, Session
from .access import MCP, caller
from .jobs import Jobs
from .mcp_server import mcp_server
from .problems import ServerError
from .run_jobs import Orders, RunJobs
from .server_options import ServerOptions

_ACTIVE: Final = 4  # concurrent runs of one agent
_CLIENTS: Final = 4  # one client gets this share of all sessions
_log = logging.getLogger("citeloom.server")


@dataclass(slots=True)
class _McpSession:
    client: str
    calls: int = 0  # in flight, not counting the client's listening stream


class McpSessions:
    """MCP sessions, limited per client and in total; a new one replaces the one idle longest.

    Clients are distinguished by address, since all send the same token. If its session has ended, a client gets 404 and
    opens another.
    """

    def __init__(self, manager: StreamableHTTPSessionManager, most: int) -> None:
        self._manager = manager
        self._most = most
        self._of_one = max(1, most // _CLIENTS)  # client, counting the session being opened
        self._opening: Counter[str] = Counter()
        self._sessions: OrderedDict[str, _McpSession] = OrderedDict()  # longest idle first

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, opening a session if needed; raises `ServerError` if all sessions are busy."""
        headers = Headers(scope=scope)
        session = headers.get(MCP_SESSION_ID_HEADER)
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if session is not None:
            with self._in_use(session, scope["method"]):
                await self._manager.handle_request(scope, receive, send)
        elif self._manager.stateless or (version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS):
            await self._manager.handle_request(scope, receive, send)
        else:
            await self._open(scope, receive, send)

    @contextmanager
    def _in_use(self, name: str, method: str) -> Iterator[None]:
        session = self._sessions.get(name)
        if session is None or method == "GET":
            yield
            return
        session.calls += 1
        self._sessions.move_to_end(name)
        try:
            yield
        finally:
            session.calls -= 1
            if method == "DELETE":
                self._sessions.pop(name, None)
            elif name in self._sessions:
                self._sessions.move_to_end(name)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = (scope.get("client") or ("unknown",))[0]
        self._opening[client] += 1

        async def note_session(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                name = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER)
                if name is not None:
                    self._sessions[name] = _McpSession(client)
            await send(message)

        try:
            while self._opening[client] + sum(each.client == client for each in self._sessions.values()) > self._of_one:
                await self._end_oldest(client)
            while len(self._sessions) + self._opening.total() > self._most:
                await self._end_oldest()
            await self._manager.handle_request(scope, receive, note_session)
        finally:
            self._opening[client] -= 1
            self._opening += Counter()  # drops zero counts

    async def _end_oldest(self, client: str | None = None) -> None:
        idle = (
            name for name, session in self._sessions.items() if not session.calls and client in (None, session.client)
        )
        name = next(idle, None)
        if name is None:
            raise ServerError(429, "Too many MCP sessions are at work.", help="End one first.", retry_after=5)
        del self._sessions[name]
        _log.info("An MCP session of %s makes room for another.", client or "some client")
        ending = {"type": "http", "http_version": "1.1", "method": "DELETE", "path": MCP, "query_string": b""}
        headers = [(MCP_SESSION_ID_HEADER.encode(), name.encode())]

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignore(_: Message) -> None:
            return None

        await self._manager.handle_request({**ending, "headers": headers}, receive, ignore)


@asynccontextmanager
async def mcp_over_http(
    session: Session, runs: RunJobs, options: ServerOptions, *, stateless: bool = False
) -> AsyncIterator[McpSessions]:
    """Serve MCP sessions for the block; a `stateless` server keeps none: the next request may reach another."""
    server = mcp_server(session, runs)
    server.streamable_http_app(  # creates the manager; its app is unused, since ours has guard and routes
        stateless_http=stateless,
        max_request_body_size=options.max_body,
        max_sessions=options.max_streams,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    async with server.session_manager.run():
        yield McpSessions(server.session_manager, options.max_streams)


class McpEndpoint:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sessions = scope["app"].state.mcp
        if sessions is None:
            raise ServerError(503, "The server is rejoining the others.", help="Ask again in a moment.", retry_after=2)
        if (who := caller.get()) is not None:
            who.require("read", "MCP")
            # The package answers requests of others to a session as if there were none.
            client = f"{who.person.name} {' '.join(sorted(who.rights))}"
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=client, scopes=[]))
        await sessions.handle_request(scope, receive, send)


async def serve_stdio(session: Session) -> None:
    """Serve one agent until it closes standard input, then pause unfinished runs."""
    jobs = Jobs(ServerJobs(), max_active=_ACTIVE, max_waiting=_ACTIVE)
    try:
        await mcp_server(session, RunJobs(session, jobs, Orders())).run_stdio_async()
    finally:
        await asyncio.shield(jobs.close())
