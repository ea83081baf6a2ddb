"""A library is copied to another home with everything that was embedded, and an interrupted copy continues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from citeloom.ingestion.doctor import examine
from citeloom.ingestion.home_copy import CopyError, copy_library
from citeloom.ingestion.ingest import ingest
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from citeloom.stores.text_analysis import analyze
from tests.support.library_fixtures import papers
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]


@pytest.fixture
async def source(papers: Path, tmp_path: Path) -> Library:
    """A library in a folder, whose embedding may embed nothing further."""
    (papers / "ada2020.notes.md").write_text("Compare with the looms of 1804.\n\nSlow.", encoding="utf-8")
    library = Library.open(FolderHome(tmp_path / "source"), WordEmbedding())
    await ingest(library, [papers])
    return library


@pytest.fixture
def opened(source: Library, open_library: Callable[[], Library]) -> Iterator[tuple[Library, Library]]:
    yield source, open_library()
    source.close()


async def test_a_copy_there_and_back_equals_its_source(opened: tuple[Library, Library], tmp_path: Path) -> None:
    source, target = opened
    report = await copy_library(source, target)
    assert (report.copied, report.present, report.version) == (2, 0, source.version())
    back = Library.open(FolderHome(tmp_path / "back"), WordEmbedding())
    await copy_library(target, back)
    for copy in (target, back):
        assert copy.version() == source.version()
        assert copy.records() == source.records()
        assert copy.fulltext.entries() == source.fulltext.entries()
        assert [finding for finding in examine(copy) if finding.level == "problem"] == []
        assert copy.embedding.embedded == []  # type: ignore[attr-defined]
        terms, vector = analyze("loom trials"), WordEmbedding().vector("loom trials")
        assert [name for name, _ in copy.nearest_ids(vector, 5)] == [name for name, _ in source.nearest_ids(vector, 5)]
        assert {name for name, _ in copy.matching(terms, 99)} == {name for name, _ in source.matching(terms, 99)}
    back.close()


async def test_an_interrupted_copy_continues(opened: tuple[Library, Library], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = opened
    monkeypatch.setattr("citeloom.ingestion.home_copy._CHUNKS_PER_BATCH", 1)

    def interrupt(key: str) -> None:
        raise InterruptedError(key)

    with pytest.raises(InterruptedError, match="ada2020"):
        await copy_library(source, target, interrupt)
    assert [paper.key for paper in target.papers()] == ["ada2020"]
    copied: list[str] = []
    report = await copy_library(source, target, copied.append)
    assert (report.copied, report.present, copied) == (1, 1, ["grace2021"])
    assert (await copy_library(source, target)).copied == 0


async def test_a_copy_never_mixes_libraries(opened: tuple[Library, Library], papers: Path, tmp_path: Path) -> None:
    source, target = opened
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mary2018.md").write_text("# Sketches\n\n## Introduction\n\nMary sketches.", encoding="utf-8")
    await ingest(target, [tmp_path / "other"])
    with pytest.raises(CopyError, match="holds papers that"):
        await copy_library(source, target)
    assert len(target.papers()) == 1


async def test_papers_that_differ_after_the_copy_are_reported(opened: tuple[Library, Library]) -> None:
    source, target = opened
    with pytest.raises(CopyError, match=r"1 paper differs after the copy \(grace2021\)"):
        await copy_library(source, target, lambda key: target.store.delete([f"{key}:00000"] * (key == "grace2021")))


async def test_a_copy_of_another_version_with_equal_papers_is_refused(
    opened: tuple[Library, Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = opened
    monkeypatch.setattr(target, "version", lambda: "another")
    with pytest.raises(CopyError, match="same papers after the copy, but another version"):
        await copy_library(source, target)


async def test_a_damaged_source_is_not_copied(opened: tuple[Library, Library]) -> None:
    source, target = opened
    source.store.delete(["grace2021:00000"])
    with pytest.raises(CopyError, match="grace2021 are missing"):
        await copy_library(source, target)
