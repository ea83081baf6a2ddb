"""Requests to a service under faults: limits, retries, redirects, broken and huge answers, and the cache."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest

from citeloom.metadata.service_client import NotCachedError, ServiceClient, ServiceError
from citeloom.models.http.failures import CallFailedError
from citeloom.stores.metadata_store import MetadataStore
from tests.support.fake_clock import FakeClock
from tests.support.home_tables import metadata_tables
from tests.support.metadata_server import Fault, MetadataServer, ServedWork

WORK = ServedWork("10.5555/one", "One work", (("Ada", "Lovelace"),))
PATH = "/works/10.5555%2Fone"


@pytest.fixture
def server() -> Iterator[MetadataServer]:
    with MetadataServer(WORK) as running:
        yield running


@asynccontextmanager
async def client_of(
    server: MetadataServer,
    tmp_path: Path,
    clock: FakeClock | None = None,
    *,
    timeout: float = 30.0,
    interval: float = 0,
) -> AsyncIterator[ServiceClient]:
    store = MetadataStore(metadata_tables(tmp_path / "metadata.sqlite"))
    async with httpx.AsyncClient(timeout=timeout, follow_redirects=False) as http:
        yield ServiceClient(
            "Crossref",
            f"{server.url}/crossref",
            store,
            http,
            max_age=60,
            timeout=timeout,
            clock=clock or FakeClock(),
            interval=interval,
        )


async def test_an_answer_is_committed_and_not_requested_again(server: MetadataServer, tmp_path: Path) -> None:
    async with client_of(server, tmp_path) as client:
        assert (await client.get(PATH))["message"]["title"] == ["One work"]
    async with client_of(server, tmp_path) as client:
        assert (await client.get(PATH))["message"]["title"] == ["One work"]
        assert await client.get("/works/10.5555%2Funknown") is None
        assert await client.get("/works/10.5555%2Funknown") is None
    assert server.requests == [f"/crossref{PATH}", "/crossref/works/10.5555%2Funknown"]


async def test_an_old_answer_is_requested_again(server: MetadataServer, tmp_path: Path) -> None:
    clock = FakeClock()
    async with client_of(server, tmp_path, clock) as client:
        await client.get(PATH)
        clock.now += 61
        await client.get(PATH)
    assert len(server.requests) == 2


@contextmanager
def failing(kind: str) -> Iterator[None]:
    """The block raises the error of a failure of this kind."""
    with pytest.raises(ServiceError) as raised:
        yield
    assert isinstance(raised.value.__cause__, CallFailedError) and raised.value.__cause__.failure.kind == kind


async def test_a_busy_service_gets_the_pause_that_it_asks_for(server: MetadataServer, tmp_path: Path) -> None:
    clock = FakeClock()
    server.faults["crossref"] = [Fault(429, b"slow down", {"Retry-After": "7"}), Fault(503), Fault(500)]
    async with client_of(server, tmp_path, clock) as client:
        assert await client.get(PATH) is not None
    assert 7 <= clock.slept[0] <= 8 and len(server.requests) == 4


async def test_a_service_that_stays_busy_is_not_tried_again(server: MetadataServer, tmp_path: Path) -> None:
    clock = FakeClock()
    server.faults["crossref"] = [Fault(503)] * 20
    async with client_of(server, tmp_path, clock) as client:
        with failing("busy"):
            await client.get(PATH)
        tries = len(server.requests)
        with pytest.raises(ServiceError):
            await client.get("/works/10.5555%2Fanother")
    assert len(server.requests) == tries <= 6 and sum(clock.slept) < 300


async def test_a_pause_that_is_too_long_is_skipped(server: MetadataServer, tmp_path: Path) -> None:
    clock = FakeClock()
    server.faults["crossref"] = [Fault(429, b"", {"Retry-After": "86400"})]
    async with client_of(server, tmp_path, clock) as client:
        with failing("busy"):
            await client.get(PATH)
    assert len(server.requests) == 1 and not clock.slept


async def test_a_service_that_does_not_answer_is_reported(server: MetadataServer, tmp_path: Path) -> None:
    server.faults["crossref"] = [Fault(hangs=True)] * 5
    async with client_of(server, tmp_path, timeout=1.5) as client:
        with failing("timeout"):
            await client.get(PATH)
    assert len(server.requests) == 2


BROKEN = {
    "no JSON": Fault(200, b"<html>maintenance</html>"),
    "half of an answer": Fault(200, b'{"status": "ok", "message": {"DOI": '),
    "nested too deeply": Fault(200, b"[" * 100_000),
    "too large": Fault(200, b"[" + b"1," * 4_500_000 + b"1]"),
    "too large when unpacked": Fault(200, gzip.compress(bytes(50_000_000)), {"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
async def test_a_broken_answer_is_an_error_and_is_not_stored(
    server: MetadataServer, tmp_path: Path, fault: Fault
) -> None:
    server.faults["crossref"] = [fault] * 10
    async with client_of(server, tmp_path) as client:
        with failing("broken"):
            await client.get(PATH)
        assert len(server.requests) <= 4
        server.faults["crossref"] = []
        assert await client.get(PATH) is not None  # it is asked again


async def test_a_redirect_to_another_host_is_not_followed(server: MetadataServer, tmp_path: Path) -> None:
    with MetadataServer(WORK) as other:
        server.faults["crossref"] = [Fault(302, headers={"Location": f"{other.url}/crossref{PATH}"})]
        async with client_of(server, tmp_path) as client:
            with failing("redirect"):
                await client.get(PATH)
        assert not other.requests


async def test_redirects_on_the_same_host_are_followed_a_few_times(server: MetadataServer, tmp_path: Path) -> None:
    server.faults["crossref"] = [Fault(301, headers={"Location": f"/crossref{PATH}"})]
    async with client_of(server, tmp_path) as client:
        assert (await client.get(PATH))["message"]["title"] == ["One work"]
        server.faults["crossref"] = [Fault(301, headers={"Location": f"/crossref{PATH}"})] * 20
        with failing("redirect"):
            await client.get("/works/10.5555%2Ftwo")


async def test_requests_are_spaced_apart(server: MetadataServer, tmp_path: Path) -> None:
    clock = FakeClock()
    async with client_of(server, tmp_path, clock, interval=1.1) as client:
        await asyncio.gather(*(client.get(f"/works/10.5555%2F{number}") for number in range(4)))
    assert sum(clock.slept) == pytest.approx(3.3)


async def test_offline_uses_an_answer_of_any_age_and_sends_nothing(server: MetadataServer, tmp_path: Path) -> None:
    clock = FakeClock()
    async with client_of(server, tmp_path, clock) as client:
        await client.get(PATH)
    clock.now += 1e6
    store = MetadataStore(metadata_tables(tmp_path / "metadata.sqlite"))
    async with httpx.AsyncClient() as http:
        url = f"{server.url}/crossref"
        client = ServiceClient("Crossref", url, store, http, max_age=60, offline=True, clock=clock)
        assert await client.get(PATH) is not None
        with pytest.raises(NotCachedError):
            await client.get("/works/10.5555%2Ftwo")
    assert len(server.requests) == 1


async def test_an_unreachable_service_is_reported(tmp_path: Path) -> None:
    with MetadataServer() as server:
        pass
    async with client_of(server, tmp_path) as client:
        with failing("unreachable"):
            await client.get(PATH)
