"""`kill -9` at each step between the engines: readers see papers before or after their change, never in between."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest
from citeloom.stores.library import Library
from citeloom.stores.milvus.milvus_rows import MilvusUnavailableError
from citeloom.stores.text_analysis import analyze
from tests.support.cli_process import ROOT
from tests.support.library_fixtures import paper_text, papers
from tests.support.milvus_lite import MilvusServer
from tests.support.word_embedding import WordEmbedding

__all__ = ["papers"]
ANY = WordEmbedding().vector("loom trials")


def texts(library: Library) -> dict[str, list[str]]:
    return {paper.key: [chunk.text for chunk in library.paper_chunks(paper.key)] for paper in library.papers()}


def assert_searches_find_whole_papers(library: Library) -> None:
    chunks = {row.id for row in library.catalog.chunk_rows()}
    assert {name for name, _ in library.nearest_ids(ANY, 999)} == chunks
    measured = {name for name, _ in library.matching(analyze("measured trials"), 999)}
    assert measured == {chunk.id for chunk in library.chunks(sorted(chunks)) if "measured" in chunk.text}
    assert {near.paper.key for near in library.nearest_papers(ANY, 9)} == {paper.key for paper in library.papers()}


def problems(library: Library) -> list[str]:
    return [f"{finding.topic}: {finding.message}" for finding in examine(library) if finding.level == "problem"]


def change(papers: Path, *, removed: bool = False) -> None:
    """Give a paper another text, or remove it."""
    (papers / "ada2020.md").write_text(paper_text("Looms and engines", "engine"), encoding="utf-8")
    if removed:
        (papers / "ada2020.md").unlink()


@pytest.mark.parametrize(
    ("step", "removed", "committed"),
    [
        ("put papers", False, False),
        ("delete", False, True),
        *(
            pytest.param(*moment, marks=pytest.mark.long)
            for moment in [
                ("put chunks", False, False),
                ("commit", False, False),
                ("forget_outdated", False, True),
                ("commit", True, False),
                ("delete", True, True),
            ]
        ),
    ],
)
async def test_a_killed_change_is_finished_by_the_next_writer_without_embedding_again(
    url: str,
    milvus: MilvusServer,
    papers: Path,
    open_library: Callable[[], Library],
    step: str,
    removed: bool,
    committed: bool,
) -> None:
    reader = open_library()
    await ingest(reader, [papers])
    before = texts(reader)
    change(papers, removed=removed)
    script = ROOT / "tests" / "support" / "interrupted_milvus_ingest.py"
    killed = subprocess.run([sys.executable, str(script), url, milvus.url, str(papers), step], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (texts(reader) != before) == committed
    assert texts(reader)["grace2021"] == before["grace2021"]
    assert_searches_find_whole_papers(reader)

    writer = open_library()
    await ingest(writer, [papers], prune=True)
    assert writer.embedding.embedded == []  # type: ignore[attr-defined]
    assert texts(writer).keys() == ({"grace2021"} if removed else {"ada2020", "grace2021"})
    assert removed or "engine" in texts(writer)["ada2020"][0]
    assert problems(writer) == []
    for library in (writer, reader):
        assert_searches_find_whole_papers(library)
    assert set(writer.fulltext.entries()) == {row.id for row in writer.catalog.chunk_rows()}


async def test_an_ingest_that_loses_milvus_commits_nothing_and_continues_later(
    milvus: MilvusServer, papers: Path, open_library: Callable[[], Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citeloom.stores.milvus.milvus_rows.READ_SECONDS", 1.0)
    for name in ("READ_SECONDS", "WRITE_SECONDS"):
        monkeypatch.setattr(f"citeloom.stores.milvus.milvus_rows.{name}", 1.0)
    library = open_library()
    await ingest(library, [papers])
    before = texts(library)
    change(papers)
    milvus.stop()
    with pytest.raises(MilvusUnavailableError, match=r"127\.0\.0\.1") as lost:
        library.nearest_ids(ANY, 3)
    assert "CITELOOM_VECTORS" in lost.value.help and "\n" not in str(lost.value)
    with pytest.raises(MilvusUnavailableError):
        library.matching(analyze("loom"), 3)
    with pytest.raises(MilvusUnavailableError):
        await ingest(library, [papers])
    assert texts(library) == before, "texts are read without Milvus"
    assert any("Milvus" in problem for problem in problems(library))

    milvus.start()
    again = open_library()
    assert "engine" in texts(again)["ada2020"][0]
    assert again.embedding.embedded == []  # type: ignore[attr-defined]
    assert_searches_find_whole_papers(again)
    assert problems(again) == []
