"""rebuild-index: from the records of the papers and their files, whatever has happened to the vectors."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citeloom.ingestion.doctor import examine, rebuild
from citeloom.ingestion.ingest import ingest
from citeloom.ingestion.ingest_events import Embedded
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from tests.support.word_embedding import WordEmbedding


def image(library: Library) -> dict[str, Any]:
    """All that a user could notice of a library, vectors included."""
    ids = [chunk.id for paper in library.papers() for chunk in library.paper_chunks(paper.key)]
    return {
        "papers": library.papers(),
        "summaries": [library.summary(paper.key) for paper in library.papers()],
        "sections": [library.sections(paper.key) for paper in library.papers()],
        "chunks": library.chunks(ids),
        "vectors": {name: row.round(6).tolist() for name, row in library.store.get_vectors(ids).items()},
        "version": library.version(),
    }


def embedded(library: Library) -> list[str]:
    assert isinstance(library.embedding, WordEmbedding)
    return library.embedding.embedded


def problems(library: Library) -> list[str]:
    return [finding.message for finding in examine(library) if finding.level == "problem"]


async def test_rebuilding_a_sound_library_changes_and_embeds_nothing(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    (papers / "library.bib").unlink()
    before, texts = image(library), len(embedded(library))
    report = await rebuild(library)
    assert (report.updated, report.refused, report.chunks_embedded) == (("ada2020", "grace2021"), (), 0)
    assert (image(library), len(embedded(library))) == (before, texts)
    assert problems(library) == []


def lose_vectors(home: Home) -> None:
    shutil.rmtree(home.chroma)
    with closing(sqlite3.connect(home.catalog)) as db, db:
        db.execute("DELETE FROM vectors")


async def test_a_lost_index_is_rebuilt_without_embedding(
    home: Home, open_library: Callable[..., Library], papers: Path
) -> None:
    library = open_library()
    await ingest(library, [papers])
    before = image(library)
    library.close()
    shutil.rmtree(home.chroma)
    again = open_library()
    report = await rebuild(again)
    assert (report.updated, report.refused, report.chunks_embedded) == (("ada2020", "grace2021"), (), 0)
    assert image(again) == before
    assert problems(again) == []


async def test_lost_vectors_are_recomputed(home: Home, open_library: Callable[..., Library], papers: Path) -> None:
    library = open_library()
    await ingest(library, [papers])
    (papers / "library.bib").unlink()
    before = image(library)
    library.close()
    lose_vectors(home)
    again = open_library()
    report = await rebuild(again)
    assert report.chunks_embedded == again.chunk_count() and not report.refused
    assert image(again) == before
    assert problems(again) == []


async def test_a_complete_paper_without_its_file_is_kept(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    (papers / "ada2020.md").unlink()
    before = image(library)
    report = await rebuild(library)
    assert (report.updated, report.refused) == (("grace2021",), ())
    assert any("ada2020: its file is gone" in warning for warning in report.warnings)
    assert image(library) == before
    library.store.delete(["ada2020:00001"])
    report = await rebuild(library)
    assert [(refusal.path, "ada2020" in refusal.reason) for refusal in report.refused] == [
        (str((papers / "ada2020.md").resolve()), True)
    ]


async def test_stray_records_are_dropped(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    library.store.put({"nobody2000": np.ones(32, np.float32)}, "summaries")
    assert problems(library)
    await rebuild(library)
    assert problems(library) == [] and library.store.stored_ids("summaries") == {"ada2020", "grace2021"}


async def test_edits_made_since_the_last_ingest_are_included(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    file = papers / "ada2020.md"
    file.write_text(file.read_text(encoding="utf-8") + "\n## Conclusion\n\nLooms compute.\n", encoding="utf-8")
    await rebuild(library)
    assert library.paper_chunks("ada2020")[-1].text == "Looms compute."
    assert library.paper("ada2020").year == 2020


async def test_a_stopped_rebuild_resumes(home: Home, open_library: Callable[..., Library], papers: Path) -> None:
    library = open_library()
    await ingest(library, [papers])
    before = image(library)
    library.close()
    lose_vectors(home)
    half = open_library()

    class StoppedError(Exception):
        pass

    def stop(event: object) -> None:
        if isinstance(event, Embedded):
            raise StoppedError

    with pytest.raises(StoppedError):
        await rebuild(half, on_event=stop)
    half.close()
    again = open_library()
    await rebuild(again)
    assert image(again) == before
    assert problems(again) == []
