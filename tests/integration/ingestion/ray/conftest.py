"""Fixtures of ingests on Ray; Ray's own use of resources is no concern of these tests."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from tests.support.forked_python import NEW
from tests.support.library_fixtures import papers

__all__ = ["papers"]


@pytest.fixture(autouse=True)
def _new_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray counts and ends processes by their command lines."""
    monkeypatch.setattr(subprocess, "Popen", NEW)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Ray with two workers, to which this process is connected."""
    folder = Path(tempfile.mkdtemp(prefix="citeloom-test-", dir="/tmp"))  # sockets need a short path
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("HOME", str(tmp_path_factory.mktemp("user")))  # where Ray keeps its token
        ray: Any = importlib.import_module("ray")
        ray.init(
            address="local",
            num_cpus=2,
            object_store_memory=100_000_000,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="CRITICAL",
            runtime_env={"working_dir": str(tmp_path_factory.mktemp("empty"))},
            _temp_dir=str(folder),
        )
        yield ray
        ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return FolderHome(tmp_path / "home")


@pytest.fixture
def libraries(tmp_path: Path) -> Iterator[tuple[Library, Library]]:
    """Two empty libraries with the bundled embedding model: one to fill here, one on Ray."""
    from citeloom.models.embeddings.bundled_models import LocalEmbedding

    both = [Library.open(FolderHome(tmp_path / name), LocalEmbedding()) for name in ("here", "ray")]
    yield both[0], both[1]
    for library in both:
        library.close()
