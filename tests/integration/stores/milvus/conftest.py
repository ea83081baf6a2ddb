"""A PostgreSQL server with an empty schema for each test, and a Milvus Lite server that several processes use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from citeloom.settings.addresses import parse_home, parse_vectors
from citeloom.stores.folder_home import find_home
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from tests.support.milvus_lite import MilvusServer
from tests.support.postgres_server import new_schema, running_server
from tests.support.word_embedding import WordEmbedding


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with running_server() as url:
        yield url


@pytest.fixture
def url(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty database home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    with new_schema(postgres) as schema:
        yield schema


@pytest.fixture
def milvus(tmp_path: Path) -> Iterator[MilvusServer]:
    """A running Milvus Lite server."""
    server = MilvusServer(tmp_path / "milvus")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def home(url: str, milvus: MilvusServer) -> Home:
    return find_home(parse_home(url), vectors=parse_vectors(milvus.url)).prepare()


@pytest.fixture
def open_library(home: Home) -> Iterator[Callable[[], Library]]:
    """Opens the library of `home`; all opened libraries are closed at the end."""
    opened: list[Library] = []

    def open_() -> Library:
        opened.append(Library.open(home, WordEmbedding()))
        return opened[-1]

    yield open_
    for library in opened:
        library.close()
