"""A home with three sample papers for each person at a terminal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from citeloom.models.embeddings.bundled_models import LocalEmbedding
from tests.support.sample_library import index_samples


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To be copied, never written to."""
    return index_samples(tmp_path_factory.mktemp("samples") / "home", LocalEmbedding()).root


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    """A separate home with three papers."""
    return Path(shutil.copytree(sample_home, tmp_path / "home"))
