"""Sessions of MCP clients: bounded for each client and for all, and nobody is locked out by another."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import SecretStr

from citeloom.api import agent_tools
from citeloom.errors import InputError
from citeloom.graph.session import Session
from tests.support.served_app import Served, served_app

pytestmark = pytest.mark.attack

TOKEN = "a-token-of-enough-characters"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
CALL = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "library_status", "arguments": {}}}
MOST = 16
OF_ONE = 4


@pytest.fixture(scope="module")
def served(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = shutil.copytree(sample_home, tmp_path_factory.mktemp("mcp") / "home")
    with served_app(home, token=SecretStr(TOKEN), max_streams=MOST, per_minute=100_000) as server:
        yield server


@pytest.fixture
def client_at(served: Served) -> Iterator[Callable[[str], httpx.Client]]:
    """Opens HTTP clients at addresses of this machine: to the server each address is another client."""
    with ExitStack() as stack:
        yield lambda address: stack.enter_context(
            httpx.Client(
                base_url=served.url, headers=HEADERS, timeout=300, transport=httpx.HTTPTransport(local_address=address)
            )
        )


def initialize(client: httpx.Client) -> httpx.Response:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})


def opened(client: httpx.Client) -> str:
    answer = initialize(client)
    assert answer.status_code == 200, answer.text
    return answer.headers["mcp-session-id"]


def status(client: httpx.Client, session: str, method: str = "tools/list", **params: Any) -> int:
    call = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
    return client.post("/mcp", json=call, headers={"mcp-session-id": session}).status_code


def hold(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Semaphore, threading.Event]:
    """Have calls of `library_status` release the semaphore and wait for the event."""
    began, release = threading.Semaphore(0), threading.Event()

    async def held(_: Session) -> None:
        began.release()
        assert await asyncio.to_thread(release.wait, 60)
        raise InputError("released")

    monkeypatch.setattr(agent_tools, "alibrary_status", held)
    return began, release


def test_a_client_that_opens_endless_sessions_locks_nobody_out(
    served: Served, client_at: Callable[[str], httpx.Client]
) -> None:
    honest, flood = client_at("127.0.0.2"), client_at("127.0.0.3")
    mine = opened(honest)
    floods = [opened(flood) for _ in range(3 * MOST)]
    assert status(honest, mine) == 200
    assert [status(flood, session) for session in floods[-OF_ONE - 1 :]] == [404] + [200] * OF_ONE
    assert status(client_at("127.0.0.4"), opened(client_at("127.0.0.4"))) == 200


def test_an_agent_at_the_address_of_a_flooding_client_is_served(
    served: Served, client_at: Callable[[str], httpx.Client]
) -> None:
    flood = client_at("127.0.0.1")
    for _ in range(3 * MOST):
        opened(flood)

    async def tools() -> int:
        async with over_http(f"{served.url}/mcp") as agent:
            return len((await agent.list_tools()).tools)

    assert asyncio.run(tools()) > 0


@asynccontextmanager
async def over_http(address: str) -> AsyncIterator[Client]:
    async with (
        httpx.AsyncClient(headers=HEADERS, timeout=300) as http,
        Client(streamable_http_client(address, http_client=http), mode="legacy") as client,
    ):
        yield client


def test_all_clients_together_stay_within_the_limit_and_the_latest_are_served(
    client_at: Callable[[str], httpx.Client],
) -> None:
    clients = [client_at(f"127.0.1.{number}") for number in range(1, 7)]
    sessions = [(client, opened(client)) for client in clients for _ in range(OF_ONE)]
    alive = [status(client, session) for client, session in sessions]
    assert alive == [404] * (len(sessions) - MOST) + [200] * MOST


def test_a_busy_session_is_kept_and_one_that_only_listens_is_ended(
    served: Served, client_at: Callable[[str], httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_at("127.0.0.5")
    began, release = hold(monkeypatch)
    working = opened(client)
    given = {"json": CALL, "headers": {"mcp-session-id": working}}
    with ExitStack() as streams:
        answer = streams.enter_context(client_at("127.0.0.5").stream("POST", "/mcp", **given))
        assert began.acquire(timeout=300)
        listening = opened(client)
        listener = client_at("127.0.0.5")
        streams.enter_context(listener.stream("GET", "/mcp", headers={"mcp-session-id": listening}))
        later = [opened(client) for _ in range(OF_ONE - 1)]
        assert status(client, listening) == 404
        assert [status(client, session) for session in later] == [200] * (OF_ONE - 1)
        release.set()
        assert json.loads("".join(answer.iter_text()).partition("data: ")[2])["result"]["isError"]
    assert status(client, working) == 200


def test_a_client_whose_sessions_are_all_busy_is_told_to_wait(
    served: Served, client_at: Callable[[str], httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    began, release = hold(monkeypatch)
    client = client_at("127.0.0.6")
    answers: list[httpx.Response] = []
    with ExitStack() as streams:
        for session in [opened(client) for _ in range(OF_ONE)]:
            given = {"json": CALL, "headers": {"mcp-session-id": session}}
            answers.append(streams.enter_context(client_at("127.0.0.6").stream("POST", "/mcp", **given)))
            assert began.acquire(timeout=300)
        refused = initialize(client)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        assert refused.headers["content-type"] == "application/problem+json"
        assert initialize(client_at("127.0.0.7")).status_code == 200
        release.set()
        assert all(b"isError" in answer.read() for answer in answers)
    # A session is idle a moment after its answer was sent.
    assert any(initialize(client).status_code == 200 for _ in range(200))


def test_a_session_ended_by_its_client_makes_room(client_at: Callable[[str], httpx.Client]) -> None:
    client = client_at("127.0.0.8")
    first, *others = [opened(client) for _ in range(OF_ONE)]
    assert client.delete("/mcp", headers={"mcp-session-id": first}).status_code == 200
    opened(client)
    assert [status(client, session) for session in (first, *others)] == [404] + [200] * (OF_ONE - 1)
    for headers, expected in (({"mcp-session-id": "x" * 30_000}, 404), ({"mcp-session-id": ""}, 404)):
        assert client.post("/mcp", json={}, headers=headers).status_code == expected
