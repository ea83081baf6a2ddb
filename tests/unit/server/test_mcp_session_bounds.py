"""How many MCP sessions there are at once: a session that is answered already is counted once."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Receive, Scope, Send

from citeloom.server.mcp_server import McpSessions

MOST = 8


class SlowManager:
    """Answers each new session with its number at once, and ends the request when it is released."""

    stateless = False

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.ended: list[str] = []
        self.release = asyncio.Event()

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "DELETE":
            self.ended.append(dict(scope["headers"])[b"mcp-session-id"].decode())
            return
        name = f"session {len(self.opened)}"
        self.opened.append(name)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"mcp-session-id", name.encode())]})
        await self.release.wait()


def request(client: str) -> dict[str, Any]:
    return {"type": "http", "method": "POST", "headers": [], "client": (client, 1)}


async def nothing_more() -> Message:
    return {"type": "http.disconnect"}


async def sent(_: Message) -> None:
    return None


def test_opening_sessions_evict_no_other_until_the_limit_is_reached() -> None:
    async def open_sessions(clients: list[str]) -> SlowManager:
        manager = SlowManager()
        sessions = McpSessions(cast(StreamableHTTPSessionManager, manager), MOST)
        opening = [asyncio.create_task(sessions.handle_request(request(each), nothing_more, sent)) for each in clients]
        while len(manager.opened) < len(clients):
            await asyncio.sleep(0)
        manager.release.set()
        await asyncio.gather(*opening)
        return manager

    assert asyncio.run(open_sessions([f"client {number}" for number in range(MOST)])).ended == []
    assert asyncio.run(open_sessions(["one client"] * 2)).ended == []
    assert asyncio.run(open_sessions([f"client {number}" for number in range(MOST + 1)])).ended == ["session 0"]
