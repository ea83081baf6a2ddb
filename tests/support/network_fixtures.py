"""Fixtures of tests over a network: two hosts, and a database that both reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .network_hosts import Network, network
from .postgres_server import new_schema, running_server


@pytest.fixture
def computers() -> Iterator[Network]:
    """Two hosts on a bridge."""
    with network(2) as joined:
        yield joined


@pytest.fixture
def url(computers: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty home that both hosts reach over TCP."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    with running_server(computers.address) as server, new_schema(server) as schema:
        yield schema
