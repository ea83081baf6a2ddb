"""The command line in this process, with homes that are quick to create."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from citeloom.models.embeddings.bundled_models import LocalEmbedding
from tests.support.cli_process import Finished, run_here
from tests.support.openai_server import FakeOpenAI
from tests.support.sample_library import EXPERIMENT, index_samples

Citeloom = Callable[..., Finished]


@pytest.fixture
def citeloom(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Citeloom:
    """A command, given as on a shell; settings by name (`CHAT_MODEL="fake"`)."""

    def give(*arguments: str | Path, **settings: str) -> Finished:
        return run_here(monkeypatch, capsys, *arguments, settings=settings)

    return give


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sample papers with the bundled embedding; to be copied, never written to."""
    return index_samples(tmp_path_factory.mktemp("samples") / "home", LocalEmbedding()).root


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    """A separate home with three papers."""
    return Path(shutil.copytree(sample_home, tmp_path / "home"))


@pytest.fixture
def exp(tmp_path: Path) -> Path:
    """The sample experiment, in the folder that the test works in."""
    return Path(shutil.copy(EXPERIMENT, tmp_path / "exp.json"))


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running
