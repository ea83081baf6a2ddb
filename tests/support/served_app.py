"""The server in a thread of the test, at a real socket, so that clients can leave and come back."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
import uvicorn
from fastapi.routing import APIRoute, _EffectiveRouteContext, _RouterIncludeContext
from mcp.server.mcpserver.tools import Tool

from citeloom.api.agent_tools import with_fields
from citeloom.models.http.client import close_connections
from citeloom.server import mcp_server
from citeloom.server.app import create_app, uvicorn_config
from citeloom.server.server_options import ServerOptions
from citeloom.server.server_state import ServerState
from citeloom.settings.addresses import DatabaseUrl
from citeloom.settings.config import Settings, load_settings
from citeloom.stores.folder_home import find_home

T = TypeVar("T")
SSE = {"Accept": "text/event-stream"}
IN_BACKGROUND = {"Prefer": "respond-async"}


_built = _EffectiveRouteContext.from_api_route
_routes: dict[tuple[int, str], _EffectiveRouteContext] = {}


def _built_once(original_route: APIRoute, include_context: _RouterIncludeContext) -> _EffectiveRouteContext:
    """FastAPI's view of a route of Citeloom, which is the same in every application and takes long to build."""
    key = id(original_route), include_context.prefix
    if key not in _routes:
        _routes[key] = _built(original_route=original_route, include_context=include_context)
    return _routes[key]


_described = mcp_server._strict_tool
_tools: dict[tuple[str, str], Tool] = {}


def _described_once(call: Callable[..., Any], title: str, **given: Any) -> Tool:
    """A tool of the MCP server; its schemas are the same in every server, and take a third of what such a test does."""
    key = call.__name__, title
    if key not in _tools:
        _tools[key] = _described(call, title, **given)
    return _tools[key].model_copy(update={"fn": with_fields(call)})


@dataclass(frozen=True)
class Event:
    """An event as a client reads it."""

    id: str
    name: str
    data: Any


class Served:
    """A running server, and a client of its API."""

    def __init__(self, settings: Settings, home: Path | DatabaseUrl, options: ServerOptions) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.app = create_app(settings, find_home(home), replace(options, port=self.port))
        self._server = uvicorn.Server(uvicorn_config(self.app))
        self._thread = threading.Thread(target=self._serve, name="served-app", daemon=True)
        headers = {} if options.token is None else {"Authorization": f"Bearer {options.token.get_secret_value()}"}
        self.api = httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=300)

    @property
    def state(self) -> ServerState:
        """The parts of the server."""
        state: ServerState = self.app.state.server
        return state

    def start(self) -> None:
        """Serve in a thread; returns when requests are answered."""
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the server ended while it started"
            time.sleep(0.01)

    def stop(self) -> None:
        """End the server and wait for it."""
        self.api.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that runs in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(300)

    def _serve(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._socket])
            await close_connections()

        asyncio.run(serve())

    def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """POST a JSON body; underscores in names of headers are hyphens."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.api.post(path, json={} if body is None else body, headers=sent)

    def conversation(self) -> str:
        """The id of a new conversation."""
        created = self.api.post("/conversations")
        assert created.status_code == 201
        return str(created.json()["thread_id"])

    def events(self, path: str, last_id: str | None = None) -> list[Event]:
        """All events of a stream until it ends."""
        headers = SSE | ({"Last-Event-ID": last_id} if last_id else {})
        with self.api.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200, answer.read()
            return list(events_of(answer.iter_lines()))

    def raw(self, request: bytes) -> bytes:
        """The answer to bytes that no client would send, up to the end of its head."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as connection:
            connection.sendall(request)
            answer = b""
            while b"\r\n\r\n" not in answer and (read := connection.recv(65_536)):
                answer += read
            return answer


def events_of(lines: Iterator[str]) -> Iterator[Event]:
    """The events in the lines of a stream."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield Event(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
            fields = {}


@contextmanager
def served_app(home: Path | DatabaseUrl, settings: dict[str, Any] | None = None, **options: Any) -> Iterator[Served]:
    """A server on this home until the end of the block; extractive unless the settings name a model.

    The settings are those of the environment, as with `serve`: a run is resumed with them.
    """
    given = {"chat_model": "extractive"} | (settings or {})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in given.items():
            patch.setenv(f"CITELOOM_{name.upper()}", str(value))
        patch.setattr(_EffectiveRouteContext, "from_api_route", _built_once)
        patch.setattr(mcp_server, "_strict_tool", _described_once)
        server = Served(load_settings(home=home), home, ServerOptions(**options))
        server.start()
        try:
            yield server
        finally:
            server.stop()
