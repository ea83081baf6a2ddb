"""`doctor` reports real damage to a library, and a repaired library equals an undamaged one."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from citeloom.documents import chunk_id
from citeloom.ingestion.doctor import examine, repair_library
from citeloom.ingestion.ingest import ingest
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.text_analysis import analyze
from tests.integration.ingestion.test_rebuild import image
from tests.support.library_fixtures import paper_text, sentences
from tests.support.made_papers import change
from tests.support.nearest import nearest
from tests.support.word_embedding import WordEmbedding

Damage = Callable[[Library], object]


def problems(library: Library) -> list[str]:
    return [f"{finding.topic}: {finding.message}" for finding in examine(library) if finding.level == "problem"]


async def everything(library: Library) -> dict[str, Any]:
    """All that a user could notice: texts, vectors, counts, notes, and what searches answer."""
    query = await library.embedding.embed_query("loom history, compiler outcome, zebrafish")
    near = nearest(library, query, 50)
    return {
        **image(library),
        "notes": [library.note(paper.key) for paper in library.papers()],
        "counts": (
            len(library.store.stored_ids()),
            len(library.store.stored_ids("summaries")),
            len(library.store.stored_ids("notes")),
        ),
        "near": [(chunk.id, round(cosine, 5)) for chunk, cosine in near],
        "papers near": [(item.paper.key, item.note) for item in library.nearest_papers(query, 5)],
        "by words": library.matching(analyze("loom history, compiler outcome"), 50),
        "words": library.fulltext.entries(),
        "catalog": (len(library.catalog.chunk_rows()), library.catalog.strays()),
    }


def in_catalog(*statements: str) -> Damage:
    def damage(library: Library) -> None:
        with sqlite3.connect(library.home.catalog) as db:
            for statement in statements:
                db.execute(statement)
        db.close()

    return damage


def orphans(library: Library) -> None:
    """What no paper of the catalog has, in every store."""
    ghost = replace(library.paper_chunks("ada2020")[0], id="ghost1999:00000", key="ghost1999")
    vector = np.ones((1, 32), dtype=np.float32)
    library.store.put({ghost.id: vector[0], "ada2020:00099": vector[0]})
    library.store.put({"ghost1999": vector[0]}, "summaries")
    library.store.put({"ghost1999:00000": vector[0]}, "notes")
    library.fulltext.put({"ghost1999": [ghost]})
    in_catalog("INSERT INTO sections VALUES ('ghost1999', 0, 'A', '', 1, 0, 0, 1, 1)")(library)


def stale_words(library: Library) -> None:
    chunks = library.paper_chunks("ada2020")
    library.fulltext.put({"ada2020": [replace(chunks[0], text="other words"), *chunks[2:]]})


def cut_short(suffixes: set[str]) -> Damage:
    def damage(library: Library) -> None:
        for file in library.home.fulltext.iterdir():
            if file.suffix in suffixes:
                start = file.read_bytes()[:7]
                file.unlink()  # cut in place, it would end this process, which has it mapped
                file.write_bytes(start)

    return damage


DAMAGE: dict[str, tuple[Damage, str]] = {
    "chunks without vectors": (
        lambda library: library.store.delete(["ada2020:00001", "grace2021:00000"]),
        "vectors: chunks, summaries or notes have no vector for: ada2020, grace2021",
    ),
    "a summary without": (
        lambda library: library.store.delete(["ada2020"], "summaries"),
        "vectors: chunks, summaries or",
    ),
    "a note without": (
        lambda library: library.store.delete(["ada2020:00000"], "notes"),
        "vectors: chunks, summaries or",
    ),
    "orphans in every store": (orphans, "vectors: 5 records without a paper: ada2020:00099, catalog ghost1999"),
    "stale words": (stale_words, "full text: differs for: ada2020"),
    "words lost": (lambda library: library.fulltext.put({"ada2020": []}), "full text: differs for: ada2020"),
    "words of no paper": (
        lambda library: library.fulltext.put(
            {"ghost1999": [replace(library.paper_chunks("ada2020")[0], id="ghost1999:00000", key="ghost1999")]}
        ),
        "full text: differs for: ghost1999",
    ),
    "full text cut short": (cut_short({".idx", ".term", ".fast"}), "full text: "),
    "full text of another mind": (
        lambda library: (library.home.fulltext / "meta.json").write_text("not what it was"),
        "full text: ",
    ),
    "full text partly gone": (
        lambda library: [file.unlink() for file in library.home.fulltext.glob("*.store")],
        "full text: ",
    ),
    "vectors gone": (
        lambda library: shutil.rmtree(library.home.chroma),
        "vectors: chunks, summaries or notes have no vector",
    ),
    "vectors no database": (
        lambda library: (library.home.chroma / "chroma.sqlite3").write_bytes(b"garbage " * 999),
        "vectors: ",
    ),
    "vectors cut short": (
        lambda library: (library.home.chroma / "chroma.sqlite3").write_bytes(
            (library.home.chroma / "chroma.sqlite3").read_bytes()[:20_000]
        ),
        "vectors: ",
    ),
    "chunks forgotten": (in_catalog("DELETE FROM chunks WHERE key = 'ada2020'"), "counts: "),
    "a chunk forgotten": (in_catalog("DELETE FROM chunks WHERE key = 'ada2020' AND idx = 2"), "counts: "),
    "miscounted": (in_catalog("UPDATE papers SET chunk_count = 3 WHERE key = 'ada2020'"), "counts: "),
    "sections forgotten": (in_catalog("DELETE FROM sections WHERE key = 'ada2020'"), "counts: "),
}


@pytest.fixture
async def sound(papers: Path, home: Home) -> dict[str, Any]:
    """What the library holds before it is damaged."""
    (papers / "ada2020.notes.md").write_text("Zebrafish argue.", encoding="utf-8")
    library = Library.open(home, WordEmbedding())
    await ingest(library, [papers])
    held = await everything(library)
    library.close()
    return held


@pytest.mark.parametrize(("damage", "named"), DAMAGE.values(), ids=DAMAGE.keys())
async def test_damage_is_reported_and_repaired(
    sound: dict[str, Any], open_library: Callable[..., Library], damage: Damage, named: str
) -> None:
    library = open_library()
    assert problems(library) == []
    damage(library)
    library.close()
    damaged = open_library()
    found = problems(damaged)
    assert any(line.startswith(named) for line in found), found
    damaged.close()
    library = open_library()
    _, refused = await repair_library(library)
    assert refused == () and problems(library) == []
    assert await everything(library) == sound
    library.close()
    assert await everything(open_library()) == sound


async def test_a_missing_full_text_folder_is_recreated_on_opening(
    sound: dict[str, Any], home: Home, open_library: Callable[..., Library]
) -> None:
    shutil.rmtree(home.fulltext)
    assert await everything(open_library()) == sound


async def test_an_index_without_vectors_is_reported_and_rebuilt(
    papers: Path, home: Home, open_library: Callable[..., Library]
) -> None:
    # Chroma moves vectors to files of their own after a thousand; before that they are in its database.
    words = sentences("shuttle", 5_000)
    (papers / "long2022.md").write_text(paper_text("Long", "shuttle") + f"\n\n## More\n\n{words}\n", encoding="utf-8")
    library = open_library()
    await ingest(library, [papers], chunking=(100, 20))
    assert library.chunk_count() > 1_000
    before = await everything(library)
    library.close()
    indices = [folder for folder in home.chroma.iterdir() if any(folder.glob("*.pickle"))]
    assert indices
    for folder in indices:
        shutil.rmtree(folder)
    library = open_library()
    assert problems(library)[0].startswith("vectors: ")
    await repair_library(library, chunking=(100, 20))
    after = await everything(library)
    assert problems(library) == []
    # An approximate index built in another order may order its neighbours' neighbours otherwise.
    assert {name for name, _ in after.pop("near")[:5]} == {name for name, _ in before.pop("near")[:5]}
    assert after == before


async def test_unrepairable_damage_is_reported_and_the_rest_is_repaired(
    sound: dict[str, Any], papers: Path, open_library: Callable[..., Library]
) -> None:
    library = open_library()
    library.store.delete(["ada2020:00001", "grace2021:00001"])
    (papers / "ada2020.md").unlink()
    done, refused = await repair_library(library)
    assert [item.path for item in refused] == [str(papers / "ada2020.md")] and "is gone" in refused[0].reason
    assert any("grace2021" in finding.message for finding in done)
    assert problems(library) == ["vectors: chunks, summaries or notes have no vector for: ada2020"]
    assert library.chunks([chunk_id("grace2021", 1)])


async def test_a_paper_being_indexed_by_another_process_is_not_a_problem(library: Library) -> None:
    library.catalog.stage([change("mill1999", np.ones((1, 64), np.float32), "A mill.")])
    assert "unfinished: not fully indexed: mill1999" in problems(library)
    async with library.home.writer_lock().held():
        assert not any("unfinished" in line for line in problems(library))
        assert "being indexed: mill1999" in [finding.message for finding in examine(library)]
