"""Papers with synthetic chunks and vectors, written directly to the stores of a library."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from citeloom.documents import Category, Chunk, Paper, chunk_id
from citeloom.models.embeddings.protocol import Vectors
from citeloom.stores.library import Library
from citeloom.stores.paper_catalog import Change, PaperRecord
from tests.support.word_embedding import DIMENSIONS


def similar(random: np.random.Generator, count: int) -> Vectors:
    """Vectors of passages with small variations, as in tables and forms."""
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
