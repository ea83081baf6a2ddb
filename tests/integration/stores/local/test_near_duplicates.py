"""Chunks that are nearly the same, many times edited: the vector index loses some of them, a search none."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from citeloom.documents import chunk_id
from citeloom.models.embeddings.protocol import Vectors
from citeloom.stores.library import Library
from citeloom.stores.local import chroma
from citeloom.stores.paper_catalog import removal
from tests.support.made_papers import carry_out, change, similar

PAPERS, PER_PAPER = 12, 50
Written = dict[str, Vectors]


@pytest.fixture
def edited(open_library: Callable[..., Library]) -> Written:
    """The vectors of a library in which every second paper was edited three times."""
    library = open_library()
    library.finish_staged()
    random = np.random.default_rng(3)
    written = {f"paper{number:02d}": similar(random, PER_PAPER) for number in range(PAPERS)}
    carry_out(library, [change(key, rows, "first") for key, rows in written.items()])
    for turn in ("second", "third", "fourth"):
        edits = {key: similar(random, PER_PAPER) for key in list(written)[::2]}
        carry_out(library, [change(key, rows, turn) for key, rows in edits.items()])
        written |= edits
    library.close()
    return written


def test_an_edit_never_overwrites_a_vector_in_place(
    open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place it would cut its neighbours off; and what is the same is not written again."""
    called = chroma._Guarded.__getattr__
    written: list[list[str]] = []

    def watched(self: chroma._Guarded, name: str) -> Any:
        function = called(self, name)

        def noted(**named: Any) -> Any:
            assert self._collection.get(ids=named["ids"], include=[])["ids"] == []
            written.append(sorted(named["ids"]))
            return function(**named)

        return noted if name in {"add", "upsert"} else function

    random = np.random.default_rng(5)
    first, second = similar(random, 4), similar(random, 4)
    library = open_library()
    library.finish_staged()
    carry_out(library, [change("a", first, "first")])
    monkeypatch.setattr(chroma._Guarded, "__getattr__", watched)
    carry_out(library, [change("a", np.stack([first[0], second[1], first[2], second[3]]), "first")])
    assert written == [["a:00001", "a:00003"]]


@pytest.mark.parametrize("whole_limit", [5_000, 0])
def test_a_search_finds_chunks_that_the_index_has_lost(
    edited: Written, open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch, whole_limit: int
) -> None:
    monkeypatch.setattr("citeloom.stores.local.vector_search.WHOLE_LIMIT", whole_limit)
    library = open_library()
    content = library.store.collection("content")
    edits = {key: similar(np.random.default_rng(4), PER_PAPER) for key in list(edited)[::2]}
    with closing(sqlite3.connect(library.home.catalog)) as db, db:
        db.executemany("UPDATE vectors SET content = ? WHERE key = ?", [(r.tobytes(), k) for k, r in edits.items()])
    for key, rows in edits.items():  # in place, which cuts records off
        content.upsert(ids=[chunk_id(key, place) for place in range(len(rows))], embeddings=list(rows))
    library.close()
    library = open_library()
    written = edited | edits
    ids = {chunk_id(key, place) for key, rows in written.items() for place in range(len(rows))}
    matrix = np.concatenate(list(written.values()))
    for row in matrix[::7]:
        assert {name for name, _ in library.nearest_ids(row, 1000)} == ids
        if whole_limit:
            exact = np.sort(matrix @ row)[::-1]
            assert np.allclose([score for _, score in library.nearest_ids(row, 10)], exact[:10], atol=1e-5)


@pytest.mark.parametrize("whole_limit", [5_000, 0])
def test_after_edits_and_removals_a_search_finds_exactly_what_the_catalog_lists(
    edited: Written, open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch, whole_limit: int
) -> None:
    """Nothing of a removed paper takes a place, and nothing of the others is lacking, however many are asked for."""
    monkeypatch.setattr("citeloom.stores.local.vector_search.WHOLE_LIMIT", whole_limit)
    writer, reader = open_library(), open_library()
    random = np.random.default_rng(12)
    shorter = {key: similar(random, 20) for key in list(edited)[1::3]}
    carry_out(writer, [change(key, rows, "shorter") for key, rows in shorter.items()])
    gone = list(edited)[::3]
    carry_out(writer, [removal(key) for key in gone])
    left = {key: rows for key, rows in (edited | shorter).items() if key not in gone}
    ids = {chunk_id(key, place) for key, rows in left.items() for place in range(len(rows))}
    matrix = np.concatenate(list(left.values()))
    for library in (writer, reader, open_library()):
        assert library.chunk_count() == len(ids)
        for query in similar(random, 5):
            exact = np.sort(matrix @ query)[::-1]
            for count in (len(ids), len(ids) + 1, 10 * len(ids)):
                found = library.nearest_ids(query, count)
                assert {name for name, _ in found} == ids and len(found) == len(ids)
                assert np.allclose([score for _, score in found], exact, atol=1e-5)
            for count in (1, 10, 100) if whole_limit else ():
                scores = [score for _, score in library.nearest_ids(query, count)]
                assert np.allclose(scores, exact[:count], atol=1e-5)
