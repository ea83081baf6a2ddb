"""What the long tests share: the real papers, indexed with the bundled model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from citeloom.stores.library import Library


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test here as long."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def corpus_library(shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """The 57 papers with the bundled embedding; read only, since all tests of the session share it.

    The first session embeds them (2-3 minutes), the next ones take the vectors from `.cache/`.
    """
    # Imported here, so that the fast tests do not wait for a database.
    from citeloom.ingestion.ingest import ingest
    from citeloom.models.embeddings.bundled_models import LocalEmbedding
    from citeloom.stores.folder_home import FolderHome
    from citeloom.stores.library import Library
    from tests.support.vector_cache import CachedEmbedding

    model = CachedEmbedding(LocalEmbedding(), ROOT / ".cache" / "vectors.sqlite")
    library = Library.open(FolderHome(tmp_path_factory.mktemp("corpus") / ".citeloom"), model)
    corpus = shared_dir / "corpus"
    report = asyncio.run(ingest(library, [corpus / "papers"], bib=corpus / "library.bib"))
    assert not report.refused
    yield library
    library.close()
