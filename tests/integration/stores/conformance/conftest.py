"""Each test of the conformance suite runs on every backend: a folder, a schema of PostgreSQL, and one with Milvus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from citeloom.settings.addresses import parse_home, vectors_url
from citeloom.stores.folder_home import FolderHome, find_home
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from tests.support.milvus_lite import require_milvus_lite
from tests.support.postgres_server import new_schema, running_server
from tests.support.word_embedding import WordEmbedding


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with running_server() as url:
        yield url


@pytest.fixture(params=["folder", "postgres", "milvus"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """An empty home on each backend."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    if request.param == "folder":
        yield FolderHome(tmp_path / "home").prepare()
        return
    vectors = None
    if request.param == "milvus":
        require_milvus_lite()
        vectors = vectors_url(str(tmp_path / "vectors.db"))
    with new_schema(request.getfixturevalue("postgres")) as url:
        yield find_home(parse_home(url), vectors=vectors).prepare()


@pytest.fixture
def backend(home: Home) -> Home:
    return home


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


@pytest.fixture
def library(open_library: Callable[[], Library]) -> Library:
    return open_library()
