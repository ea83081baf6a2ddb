"""Where the real papers are, the library made of them, and nothing of a developer's own settings."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from citeloom.stores.library import Library

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder with corpus/, experiments/ and retrieval/; skips with a reason where it is missing."""
    folder = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared"))
    if not (folder / "corpus" / "papers").is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"CI must have the real papers, but {folder} holds none (set CITELOOM_SHARED).")
        pytest.skip(f"no real papers at {folder} (set CITELOOM_SHARED to the folder that holds corpus/)")
    return folder


@pytest.fixture(autouse=True)
def _only_declared_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A test sees no setting of the machine it runs on and no `.env` of the folder it was started in."""
    for name in list(os.environ):
        if (name.startswith("CITELOOM_") and name != "CITELOOM_SHARED") or name.startswith("OPENAI_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield


@pytest.fixture(scope="session")
def corpus_library(shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """The 57 papers with the bundled embedding; read only, since all tests of the session share it.

    The first session embeds them (2-3 minutes), the next ones take the vectors from `.cache/`.
    """
    # Imported here, so that the fast tests do not wait for a database.
    from citeloom.models.local_embedding import LocalEmbedding
    from citeloom.stores.home import Home
    from citeloom.stores.ingest import ingest
    from citeloom.stores.library import Library
    from citeloom.stores.vector_cache import VectorCache

    cache = VectorCache(ROOT / ".cache" / "vectors.sqlite")
    library = Library.open(Home(tmp_path_factory.mktemp("corpus") / ".citeloom"), LocalEmbedding())
    corpus = shared_dir / "corpus"
    report = asyncio.run(ingest(library, [corpus / "papers"], bib=corpus / "library.bib", cache=cache))
    assert not report.refused
    yield library
    library.close()
    cache.close()
