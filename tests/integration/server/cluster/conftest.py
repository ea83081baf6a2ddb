"""A library of three papers in PostgreSQL, the model as a fake server, and machines that serve both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from citeloom.ingestion.ingest import ingest
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from tests.integration.stores.postgres.conftest import postgres, url
from tests.support.event_streams import Gate
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI
from tests.support.sample_library import SAMPLES, THREE
from tests.support.server_machines import Machine, machines

__all__ = ["postgres", "url"]
Cluster = Callable[[int], list[Machine]]


@pytest.fixture
def model() -> Iterator[FakeOpenAI]:
    """The model; streams wait at its gate after four chunks."""
    with FakeOpenAI(behaviour=Librarian(), gate=Gate(after=4)) as running:
        yield running


@pytest.fixture
def library(url: str) -> str:
    """The address of the library with its papers."""
    opened = Library.open(find_home(parse_home(url)), LocalEmbedding())
    try:
        report = asyncio.run(ingest(opened, [SAMPLES / f"{key}.md" for key in THREE], bib=SAMPLES / "library.bib"))
    finally:
        opened.close()
    assert len(report.added) == len(THREE)
    return url


@pytest.fixture
def settings(model: FakeOpenAI) -> dict[str, str]:
    """The settings of all servers."""
    return {
        "CHAT_MODEL": "fake",
        "CHAT_BASE_URL": model.base_url,
        "CHAT_API_KEY": "k",
        "MAX_REPAIRS": "0",
        "TOP_K_INITIAL": "4",
    }


@pytest.fixture
def cluster(library: str, settings: dict[str, str], tmp_path: Path) -> Iterator[Cluster]:
    """Starts so many machines; called once in a test."""
    with ExitStack() as stack:
        yield lambda count: stack.enter_context(machines(tmp_path, library, settings, count))
