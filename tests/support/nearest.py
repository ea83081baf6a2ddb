"""The chunks that a library finds nearest to a vector, whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from citeloom.documents import Chunk
from citeloom.models.embedding import Vector
from citeloom.models.roles import Candidate
from citeloom.stores.library import Library
from citeloom.tools.scope import Scope


def nearest(library: Library, vector: Vector, k: int, **limits: Any) -> list[tuple[Chunk, float]]:
    """The `k` nearest chunks with their cosine, best first; `limits` are those of `Library.nearest_ids`."""
    best = dict(library.nearest_ids(vector, k, **limits))
    return [(chunk, best[chunk.id]) for chunk in library.chunks(list(best))]


class ByVector:
    """A chunk search that remembers what it was asked."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.asked: list[tuple[int, Scope]] = []

    async def __call__(self, query: str, k: int, scope: Scope) -> Sequence[Candidate]:
        self.asked.append((k, scope))
        vector = await self.library.embedding.embed_query(query)
        near = nearest(
            self.library, vector, k, keys=list(scope.papers) or None, categories=list(scope.categories) or None
        )
        return [Candidate(chunk, self.library.paper(chunk.key), max(0.0, score)) for chunk, score in near]
