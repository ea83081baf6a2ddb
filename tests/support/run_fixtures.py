"""A small library of the sample papers, made once per session, and sessions of it with a chat model."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from citeloom import aingest, aopen_library
from citeloom.graph.session import Session, open_session
from citeloom.models.http.client import close_connections
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from tests.support.openai_server import FakeOpenAI

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ("obrien2019seeds", "okafor2022ensembles", "tanaka2023position", "varga2021calibration")

Opened = Callable[..., Session]


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with four of the sample papers; tests that write to it must copy it."""
    home = tmp_path_factory.getbasetemp() / "sample" / "home"
    if home.exists():  # made for the tests of another folder
        return home
    library = ROOT / "examples" / "library"

    async def fill() -> None:
        async with aopen_library(home) as opened:
            report = await aingest(opened, [library / f"{key}.md" for key in PAPERS], bib=library / "library.bib")
            assert report["papers_added"] == len(PAPERS)

    asyncio.run(fill())
    return home


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    """A copy of the sample home for one test."""
    return shutil.copytree(sample_home, tmp_path / "home")


@pytest.fixture(scope="session")
def experiment() -> dict[str, Any]:
    """The sample experiment."""
    loaded: dict[str, Any] = json.loads((ROOT / "examples" / "exp.json").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running


@pytest.fixture
def usual() -> dict[str, Any]:
    """The settings of each session of a file, unless a test gives others."""
    return {"max_retries": 0}


@pytest.fixture
async def session(home: Path, server: FakeOpenAI, usual: dict[str, Any]) -> AsyncIterator[Opened]:
    """Opens the sample library, or a copy of it, with the chat model of the server."""
    with ExitStack() as stack:

        def open_(at: Path = home, **settings: Any) -> Session:
            given = {"chat_model": "fake", "chat_base_url": server.base_url, **usual, **settings}
            return stack.enter_context(open_session(Settings(**given), FolderHome(at)))

        yield open_
    await close_connections()
