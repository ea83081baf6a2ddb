"""Beyond the size that is searched exactly, vectors are found through an index, with the same filters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from citeloom.documents import Category
from citeloom.errors import InputError
from citeloom.ingestion.doctor import examine
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from citeloom.stores.paper_catalog import Change
from citeloom.stores.store_protocols import TextScope
from tests.support.made_papers import carry_out, change
from tests.support.word_embedding import DIMENSIONS, WordEmbedding

PAPERS, CHUNKS, QUERIES, NEAREST = 12, 50, 20, 10


def made() -> list[Change]:
    random = np.random.default_rng(7)
    rows = random.normal(size=(PAPERS, CHUNKS, DIMENSIONS)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    return [change(f"paper{number:02d}", vectors, "text") for number, vectors in enumerate(rows)]


@pytest.fixture
def library(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A library in which more than a hundred chunks are searched through the index."""
    for module in ("postgres_catalog", "postgres_vectors"):
        monkeypatch.setattr(f"citeloom.stores.postgres.{module}.EXACT_LIMIT", 100)
    opened = Library.open(find_home(parse_home(url)), WordEmbedding())
    opened.finish_staged()
    yield opened
    opened.close()


def index_of(library: Library) -> list[str]:
    return [finding.message for finding in examine(library) if finding.topic == "index"]


def test_the_index_is_built_when_it_is_needed_and_finds_the_nearest(library: Library) -> None:
    changes = made()
    carry_out(library, changes[:2])
    assert index_of(library) == ["none; exact search of 100 chunks"]
    carry_out(library, changes[2:])
    assert index_of(library) == ["vectors are indexed (HNSW)"]
    everything = {chunk.id: row for each in changes for chunk, row in zip(each.chunks, each.vectors, strict=True)}
    hits = 0
    for query in np.random.default_rng(8).normal(size=(QUERIES, DIMENSIONS)).astype(np.float32):
        unit = query / np.linalg.norm(query)
        exact = sorted(everything, key=lambda name: -float(everything[name] @ unit))[:NEAREST]
        found = library.nearest_ids(unit, NEAREST)
        assert len(found) == NEAREST
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
        hits += len(set(exact) & {name for name, _ in found})
    assert hits >= 0.95 * QUERIES * NEAREST


def test_a_filtered_search_still_returns_all_requested_chunks(library: Library) -> None:
    carry_out(library, made())
    vector = WordEmbedding().vector("anything")
    some = [f"paper{number:02d}" for number in range(4)]
    found = library.nearest_ids(vector, 150, TextScope(some, [Category.METHOD]))
    assert len(found) == 150
    assert {name.partition(":")[0] for name, _ in found} == set(some)
    assert library.nearest_ids(vector, 5, TextScope(categories=[Category.ABSTRACT])) == []


def test_a_changed_paper_is_removed_from_the_index(library: Library) -> None:
    changes = made()
    carry_out(library, changes)
    own = changes[0].vectors[0]
    assert library.nearest_ids(own, 1)[0][0] == "paper00:00000"
    carry_out(library, [change("paper00", changes[1].vectors[:1], "another")])
    assert library.nearest_ids(own, 1)[0][1] < 0.99
    assert library.nearest_ids(changes[1].vectors[0], 2)[0][0] == "paper00:00000"


def test_vectors_of_another_size_are_refused(library: Library) -> None:
    carry_out(library, made()[:1])
    with pytest.raises(InputError, match="holds vectors of 32 numbers, but these have 8"):
        carry_out(library, [change("other", np.eye(8, dtype=np.float32), "text")])
    assert [paper.key for paper in library.papers()] == ["paper00"], "nothing of it was written"
