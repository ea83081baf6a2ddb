"""Chunks that are nearly the same, many times edited: the vector index loses some of them, a search none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from citeloom.documents import Category, Chunk, Paper, chunk_id
from citeloom.models.embedding import Vectors
from citeloom.stores import chroma
from citeloom.stores.changes import Change, PaperRecord
from citeloom.stores.library import Library
from tests.support.word_embedding import DIMENSIONS

PAPERS, PER_PAPER = 12, 50
Written = dict[str, Vectors]


def similar(random: np.random.Generator, count: int) -> Vectors:
    """Vectors of a few passages with a number changed here and there, as tables and forms have them."""
    forms = np.random.default_rng(2).integers(-2, 3, (4, DIMENSIONS))
    steps = (random.random((count, DIMENSIONS)) < 0.06) * random.choice([-1, 1], (count, DIMENSIONS))
    rows = forms[random.integers(0, 4, count)] + steps + 1e-3
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def change(key: str, vectors: Vectors, text: str) -> Change:
    chunks = [
        Chunk(chunk_id(key, place), key, place, f"{text} {place}", "A", "", Category.METHOD, 1, None, 0, 9, 9)
        for place in range(len(vectors))
    ]
    record = PaperRecord(Paper(key, key), "", "", f"{text} {key}", "extractive", len(chunks))
    return Change(key, record, (), tuple(chunks), vectors, vectors[0])


def carry_out(library: Library, changes: Sequence[Change]) -> None:
    library.catalog.stage(changes)
    library.carry_out(changes)


@pytest.fixture
def edited(open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch) -> Written:
    """The vectors of a library in which every second paper was edited three times.

    Its index has so many edges that no chunk is without one before an edit takes it away.
    """
    monkeypatch.setitem(chroma._CONFIGURATION["hnsw"], "max_neighbors", 32)
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


def test_an_edit_cuts_no_chunk_off_from_the_index(edited: Written, open_library: Callable[..., Library]) -> None:
    for _ in range(4):  # each client builds the index anew
        library = open_library()
        found = library.store.nearest_ids(edited["paper01"][0], PAPERS * PER_PAPER + 1)
        assert len(found) == PAPERS * PER_PAPER


@pytest.mark.parametrize("whole_limit", [5_000, 0])
def test_a_search_finds_what_the_index_has_cut_off(
    edited: Written, open_library: Callable[..., Library], monkeypatch: pytest.MonkeyPatch, whole_limit: int
) -> None:
    monkeypatch.setattr("citeloom.stores.reach.WHOLE_LIMIT", whole_limit)
    library = open_library()
    content = library.store.collection("content")
    edits = {key: similar(np.random.default_rng(4), PER_PAPER) for key in list(edited)[::2]}
    for key, rows in edits.items():  # replaced in place, as earlier versions did
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
