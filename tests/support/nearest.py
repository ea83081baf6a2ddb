"""The chunks that a library finds nearest to a vector."""

from __future__ import annotations

from typing import Any

from citeloom.documents import Chunk
from citeloom.models.embeddings.protocol import Vector
from citeloom.stores.library import Library
from citeloom.stores.store_protocols import TextScope


def nearest(library: Library, vector: Vector, k: int, **limits: Any) -> list[tuple[Chunk, float]]:
    """The `k` nearest chunks with their cosine, best first; `limits` are fields of `TextScope`."""
    best = dict(library.nearest_ids(vector, k, TextScope(**limits)))
    return [(chunk, best[chunk.id]) for chunk in library.chunks(list(best))]
