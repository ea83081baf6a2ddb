"""What Milvus has lost is found by doctor and written again from PostgreSQL, without files and without embedding."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from citeloom.ingestion.doctor import examine, repair
from citeloom.ingestion.ingest import ingest
from citeloom.settings.addresses import VectorsUrl
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.milvus.milvus_rows import CHUNKS, MilvusConnection, MilvusRows
from citeloom.stores.store_protocols import VectorStoreError
from citeloom.stores.text_analysis import analyze
from tests.support.library_fixtures import paper_text, papers
from tests.support.milvus_lite import MilvusServer
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]
ANY = WordEmbedding().vector("loom trials")


@pytest.fixture
async def library(papers: Path, open_library: Callable[[], Library]) -> Library:
    """A library whose papers are no longer there as files."""
    opened = open_library()
    await ingest(opened, [papers])
    shutil.rmtree(papers)
    opened.embedding.embedded.clear()  # type: ignore[attr-defined]
    return opened


def rows_of(library: Library, milvus: MilvusServer) -> MilvusRows:
    name = library.catalog.meta("milvus")
    assert name is not None
    return MilvusRows(MilvusConnection(VectorsUrl(milvus.url)), name)


def answers(library: Library) -> tuple[object, ...]:
    words = analyze("loom procedure trials")
    papers_found = [(near.paper.key, near.score) for near in library.nearest_papers(ANY, 2)]
    return library.nearest_ids(ANY, 20), library.matching(words, 20), papers_found, library.fulltext.entries()


def problems(library: Library) -> list[str]:
    return [finding.message for finding in examine(library) if finding.level == "problem"]


async def test_lost_and_unknown_rows_are_repaired(library: Library, milvus: MilvusServer) -> None:
    before = answers(library)
    rows = rows_of(library, milvus)
    versions = {version for version, _, _ in rows.stored_rows(CHUNKS)}
    lost = max(versions)
    kept = [row for row in rows.stored_rows(CHUNKS) if row[0] != lost]
    assert kept
    rows.delete([lost])
    keys = {"ada2020", "grace2021"}
    (gone,) = {key for key in keys for message in problems(library) if key in message}  # the other one is complete
    assert any(gone in finding.message for finding in await repair(library))
    assert problems(library) == []
    assert answers(library) == before
    assert library.embedding.embedded == []  # type: ignore[attr-defined]


async def test_an_older_backup_of_milvus_is_updated(
    library: Library, milvus: MilvusServer, tmp_path: Path, open_library: Callable[[], Library]
) -> None:
    milvus.stop()
    shutil.copytree(milvus.folder, tmp_path / "backup")
    milvus.start()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "mary2018.md").write_text(paper_text("Sketches", "sketch"), encoding="utf-8")
    later = open_library()
    await ingest(later, [tmp_path / "more"])
    before = answers(later)
    milvus.stop()
    shutil.rmtree(milvus.folder)
    shutil.copytree(tmp_path / "backup", milvus.folder)
    milvus.start()
    again = open_library()
    assert any("mary2018" in message for message in problems(again))
    await repair(again)
    assert problems(again) == []
    assert answers(again) == before
    assert again.embedding.embedded == []  # type: ignore[attr-defined]


async def test_an_empty_milvus_is_refilled(library: Library, milvus: MilvusServer) -> None:
    before = answers(library)
    rows_of(library, milvus).drop()
    with pytest.raises(VectorStoreError, match="does not hold this library") as missing:
        library.nearest_ids(ANY, 3)
    assert "doctor --repair" in missing.value.help
    assert any("does not hold this library" in message for message in problems(library))
    await repair(library)
    assert problems(library) == []
    assert answers(library) == before


def test_a_new_library_has_no_problems(home: Home, open_library: Callable[[], Library]) -> None:
    assert problems(open_library()) == []
