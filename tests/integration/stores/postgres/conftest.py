"""A PostgreSQL server, and an empty schema for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres_server import new_schema, running_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with running_server() as url:
        yield url


@pytest.fixture
def url(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    with new_schema(postgres) as schema:
        yield schema
