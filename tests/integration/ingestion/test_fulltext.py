"""The full-text index beside the other stores: what it finds, and what happens when it is damaged or stale."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from citeloom.documents import Category
from citeloom.errors import WRONG_INPUT
from citeloom.ingestion.doctor import examine, repair
from citeloom.ingestion.ingest import ingest, remove_all
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.local.fulltext import FullText
from citeloom.stores.store_protocols import FullTextError, TextScope
from citeloom.stores.text_analysis import analyze


def found(library: Library, query: str, k: int = 5, **limits: Any) -> list[str]:
    return [name for name, _ in library.matching(analyze(query), k, TextScope(**limits))]


def problems(library: Library) -> list[str]:
    return [f"{finding.topic}: {finding.message}" for finding in examine(library) if finding.level == "problem"]


@pytest.mark.parametrize(
    "query",
    [
        "loom-history",
        'a stray " quote on looms',
        "looms AND (NOT",
        "text:loom^3 history~2",
        "+loom -history *",
        "\x00loom\x00",
        "loom \ud800",
        "LOOMS’ histories",
        "loom " * 3000,
    ],
)
async def test_a_query_is_read_as_words_whatever_characters_it_contains(
    library: Library, papers: Path, query: str
) -> None:
    await ingest(library, [papers])
    assert found(library, query)[0].startswith("ada2020:")


@pytest.mark.parametrize("query", ["", "   ", '"', "the of and", "织机", "zyzzyva"])
async def test_a_query_without_known_words_finds_nothing(library: Library, papers: Path, query: str) -> None:
    await ingest(library, [papers])
    assert found(library, query) == []


async def test_each_scope_returns_only_its_own_passages(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    query = "number measured trials"
    assert len(found(library, query, 1000)) == library.chunk_count()
    assert {name.split(":")[0] for name in found(library, query, 50, keys=["grace2021"])} == {"grace2021"}
    assert {name.split(":")[0] for name in found(library, query, 50, years=(2020, 2020))} == {"ada2020"}
    assert {name.split(":")[0] for name in found(library, query, 50, venue="notes on")} == {"ada2020"}
    methods = library.chunks(found(library, query, 50, categories=[Category.METHOD]))
    assert methods and {chunk.category for chunk in methods} == {Category.METHOD}
    assert found(library, query, ids=["ada2020:00001"]) == ["ada2020:00001"]
    for nothing in ({"keys": ["nobody"]}, {"keys": []}, {"years": (1, 2)}, {"venue": "elsewhere"}, {"ids": []}):
        assert found(library, query, **nothing) == []


async def test_a_corrected_year_narrows_searches_at_once(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    bib = papers / "library.bib"
    bib.write_text(bib.read_text(encoding="utf-8").replace("year = {2020}", "year = {1843}"), encoding="utf-8")
    assert (await ingest(library, [papers])).chunks_embedded == 0
    assert found(library, "loom", years=(1840, 1850))
    assert not found(library, "loom", years=(2020, 2020))
    assert problems(library) == []


async def test_edits_and_removals_reach_the_full_text_index(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    file = papers / "ada2020.md"
    file.write_text(file.read_text(encoding="utf-8").replace("loom outcome", "mill outcome"), encoding="utf-8")
    assert not found(library, "mill")
    await ingest(library, [papers])
    assert found(library, "mill") and found(library, "outcome", keys=["ada2020"])
    await remove_all(library, ["ada2020"])
    assert not found(library, "mill") and {name.split(":")[0] for name in library.fulltext.entries()} == {"grace2021"}
    assert problems(library) == []


async def test_an_older_home_gets_its_index_on_opening(
    home: Home, papers: Path, open_library: Callable[..., Library]
) -> None:
    library = open_library()
    await ingest(library, [papers])
    wanted = library.fulltext.entries()
    embedded = library.embedding.embedded.copy()  # type: ignore[attr-defined]
    library.close()
    shutil.rmtree(home.fulltext)
    again = open_library()
    assert again.fulltext.entries() == wanted and embedded
    assert again.embedding.embedded == []  # type: ignore[attr-defined]
    assert found(again, "loom") and problems(again) == []


async def test_a_killed_rebuild_starts_again(
    home: Home, papers: Path, open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = open_library()
    await ingest(library, [papers])
    wanted = library.fulltext.entries()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FullText, "put_all", killed)
        with pytest.raises(KeyboardInterrupt):
            library.rebuild_fulltext()
    library.close()
    assert open_library().fulltext.entries() == wanted


async def test_a_broken_index_is_reported_and_repaired(
    home: Home, papers: Path, open_library: Callable[..., Library]
) -> None:
    library = open_library()
    await ingest(library, [papers])
    library.close()
    (home.fulltext / "meta.json").write_text("no longer what it was", encoding="utf-8")
    broken = open_library()
    with pytest.raises(FullTextError, match="cannot be read") as raised:
        found(broken, "loom")
    assert raised.value.exit_code == WRONG_INPUT and "doctor --repair" in raised.value.help
    assert "full text" in problems(broken)[0]
    assert len(broken.papers()) == 2
    await repair(broken)
    assert problems(broken) == [] and found(broken, "loom")


async def test_stale_index_entries_are_found_and_repaired(library: Library, papers: Path) -> None:
    await ingest(library, [papers])
    chunks = library.paper_chunks("ada2020")
    library.fulltext.put({"ada2020": [replace(chunks[0], text="other words")]})
    library.fulltext.put({"ghost1999": [replace(chunks[0], id="ghost1999:00000", key="ghost1999")]})
    assert problems(library) == ["full text: differs for: ada2020, ghost1999"]
    assert not [name for name in found(library, "loom", 50) if name.startswith("ghost")]
    await repair(library)
    assert problems(library) == []


async def test_a_search_sees_changes_by_another_process(papers: Path, open_library: Callable[..., Library]) -> None:
    writer, reader = open_library(), open_library()
    await ingest(writer, [papers / "ada2020.md"])
    assert found(reader, "loom") and not found(reader, "compiler")
    await ingest(writer, [papers])
    assert found(reader, "compiler")
    await remove_all(writer, ["ada2020"])
    assert not found(reader, "loom") and found(reader, "compiler")
