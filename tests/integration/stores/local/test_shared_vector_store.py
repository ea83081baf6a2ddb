"""Two processes at one vector store: neither meets the other in the midst of writing its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock, Timeout

from citeloom.documents import Chunk, chunk_id
from citeloom.ingestion.ingest import ingest
from citeloom.models.embeddings.protocol import Vector
from citeloom.roles.protocols import Need
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.local import chroma
from citeloom.stores.text_analysis import analyze
from citeloom.tools.paper_search import search_papers
from citeloom.tools.retrieval import retrieve
from citeloom.tools.window_search import propose_windows
from tests.support.made_papers import carry_out, change, similar

WRITES = ("add", "upsert", "update", "delete")


def is_held(home: Home) -> bool:
    try:
        with FileLock(home.locks / "chroma.lock", timeout=0):
            return False
    except Timeout:
        return True


def shorten(papers: Path) -> None:
    file = papers / "ada2020.md"
    text = file.read_text(encoding="utf-8").replace("loom history", "mill history")
    file.write_text(text[: text.index("## Results")], encoding="utf-8")


async def test_the_folder_is_locked_whenever_it_is_opened_or_written(
    home: Home, papers: Path, open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, bool]] = []
    opened, called = chroma._unique_spelling, chroma._Guarded.__getattr__

    def noted_opening(path: Path) -> str:
        seen.append(("open", is_held(home)))
        return opened(path)

    def noted_call(self: chroma._Guarded, name: str) -> Any:
        if name in WRITES:
            seen.append((name, is_held(home)))
        return called(self, name)

    monkeypatch.setattr(chroma, "_unique_spelling", noted_opening)
    monkeypatch.setattr(chroma._Guarded, "__getattr__", noted_call)
    library = open_library()
    await ingest(library, [papers])
    shorten(papers)
    await ingest(library, [papers])
    query = await library.embedding.embed_query("loom")
    assert len(library.nearest_ids(query, 1000)) == library.chunk_count()
    assert {"open", "upsert", "delete"} <= {name for name, _ in seen}
    assert [name for name, held in seen if not held] == []
    assert not is_held(home)


@pytest.mark.parametrize("whole_limit", [5_000, 0])
def test_a_search_sees_one_state_while_another_process_writes(
    open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch, whole_limit: int
) -> None:
    monkeypatch.setattr("citeloom.stores.local.vector_search.WHOLE_LIMIT", whole_limit)
    random = np.random.default_rng(6)
    writer, reader = open_library(), open_library()
    writer.finish_staged()
    carry_out(writer, [change(key, similar(random, 30), "first") for key in ("ada2020", "grace2021")])
    edits = [[change("ada2020", similar(random, 20), "second")]]
    read = reader.store.get_vectors

    def in_its_midst(ids: Sequence[str]) -> dict[str, Vector]:
        found = read(ids)
        if edits:
            carry_out(writer, edits.pop())
        return found

    monkeypatch.setattr(reader._nearest._chunks, "_vectors", in_its_midst)
    found = {name for name, _ in reader.nearest_ids(similar(random, 1)[0], 1000)}
    assert found == {chunk_id(p.key, place) for p in reader.papers() for place in range(reader.chunk_count(p.key))}
    assert not edits and len(found) == 50


@pytest.mark.parametrize("whole_limit", [5_000, 0])
def test_two_edits_by_another_process_during_a_search_are_not_reported_as_damage(
    open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch, whole_limit: int
) -> None:
    """The client of the reader was opened between the edits: it has no vector of what the second one brought."""
    monkeypatch.setattr("citeloom.stores.local.vector_search.WHOLE_LIMIT", whole_limit)
    random = np.random.default_rng(9)
    writer, reader = open_library(), open_library()
    writer.finish_staged()
    carry_out(writer, [change(key, similar(random, 30), "first") for key in ("ada2020", "grace2021")])
    edits = [[change("ada2020", similar(random, count), f"of {count}")] for count in (40, 20)]
    read = reader.store.get_vectors

    def between_the_edits(ids: Sequence[str]) -> dict[str, Vector]:
        while edits:
            carry_out(writer, edits.pop())
            reader.store.close() if edits else None
            reader.store.collection("content")
        return read(ids)

    monkeypatch.setattr(reader.store, "get_vectors", between_the_edits)
    monkeypatch.setattr(reader._nearest._chunks, "_vectors", between_the_edits)
    query = similar(random, 1)[0]
    assert len(reader.cosines(query, [chunk_id("ada2020", place) for place in range(30)])) == 30
    assert len(reader.nearest_ids(query, 1000)) == 70


def test_a_process_with_an_outdated_client_loses_nothing_when_it_writes(
    open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(chroma._CONFIGURATION["hnsw"], "sync_threshold", 25)  # each writes the files of the index
    random = np.random.default_rng(7)
    one, other = open_library(), open_library()
    one.finish_staged()
    for number in range(6):
        library = (one, other)[number % 2]
        carry_out(library, [change(f"paper{number}", similar(random, 30), "first")])
    for library in (one, other, open_library()):
        assert len(library.nearest_ids(similar(random, 1)[0], 1000)) == 180
        assert (
            len(library.store.stored_ids()) == len(library.store.get_vectors(sorted(library.store.stored_ids()))) == 180
        )


def test_a_call_in_progress_succeeds_if_another_thread_reopens_the_folder(
    open_library: Callable[..., Library],
) -> None:
    library = open_library()
    library.finish_staged()
    carry_out(library, [change("ada2020", similar(np.random.default_rng(8), 30), "first")])
    under_way = library.store.collection("content")
    library.store.close()
    assert under_way.count() == len(library.store.stored_ids()) == 30


async def test_a_word_search_sees_one_state_while_another_process_writes(
    open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(10)
    writer, reader = open_library(), open_library()
    writer.finish_staged()
    carry_out(writer, [change(key, similar(random, 20), "loom") for key in ("ada2020", "grace2021")])
    edits = [[change("ada2020", similar(random, 40), "looms")]]
    search = reader.fulltext.search

    def in_its_midst(*arguments: Any) -> Any:
        found = search(*arguments)
        if edits:
            carry_out(writer, edits.pop())
        return found

    monkeypatch.setattr(reader.fulltext, "search", in_its_midst)
    assert len(reader.matching(analyze("loom"), 1000)) == 60


@pytest.mark.parametrize("how", ["retrieve", "search_papers", "propose_windows"])
async def test_a_paper_that_changes_while_results_are_loaded_ends_no_search(
    how: str, open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(11)
    writer, reader = open_library(), open_library()
    writer.finish_staged()
    carry_out(writer, [change(key, similar(random, 20), "loom") for key in ("ada2020", "grace2021")])
    fetch = reader.chunks

    def before_it_is_shown(ids: Sequence[str]) -> list[Chunk]:
        found = fetch(ids)
        writer.catalog.stage([change("ada2020", similar(random, 10), "mill")])
        return found

    monkeypatch.setattr(reader, "chunks", before_it_is_shown)
    if how == "retrieve":
        shown = {hit.paper.key for hit in await retrieve(reader, "loom", 40)}
    elif how == "search_papers":
        shown = {hit.paper.key for hit in search_papers(reader, "loom").hits} - {"ada2020"}
    else:
        windows = await propose_windows(reader, [Need("N1", "loom", ("loom",))])
        shown = {window.paper.key for window in windows}
    assert shown == {"grace2021"}
