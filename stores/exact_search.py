"""Nearest neighbours without loss: what Chroma's graph may not lead to is compared vector by vector.

Chroma searches a graph of neighbours (HNSW), and every client builds the part of it that was lately written anew, on
several threads and in no fixed order. A record may end up with no edge leading to it: it is stored, `get` returns it,
and no query finds it, however many results are asked for. A vector that is replaced in place does that to its former
neighbours, and among many near duplicates it happens to some of them from the start.

So a small collection is compared whole, without the graph. Of a large one, all that the graph leads to is asked for
once in each state of the library, and what is lacking is compared beside what a search finds. Where much is lacking,
what is left of the graph leads astray as well, and the collection is compared whole all the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from ..models.embeddings.protocol import Vector, Vectors

Scored = list[tuple[str, float]]

# Records: reading their vectors takes 40 us each, once in each state, and no search is slower than one in the graph.
WHOLE_LIMIT: Final = 5_000
_WIDENING: Final = 4
_MOST_LACKING: Final = 0.01  # of the records: beyond that a search for a few misses some that a search for all finds


class SearchScope(Protocol):
    """The records that a search may find."""

    def ids(self) -> Sequence[str]:
        """All of them."""
        ...

    def holds(self, identifier: str) -> bool:
        """Whether a record is one of them; the store may hold records of no ready paper."""
        ...


@dataclass(frozen=True, slots=True)
class _Beside:
    """Vectors that are compared without the graph: [n, d], their ids in order; `whole` when there are no others."""

    ids: Sequence[str]
    rows: Vectors
    whole: bool

    def nearest(self, vector: Vector, k: int, scope: SearchScope) -> Scored:
        """Ids and cosines of the `k` nearest within a scope; equal cosines go by id."""
        if not self.ids:
            return []
        # Not a matrix product: that one may round equal rows differently.
        scores = np.einsum("ij,j->i", self.rows, vector)
        found: Scored = []
        for place in np.argsort(-scores, kind="stable"):
            if len(found) == k:
                break
            if scope.holds(self.ids[place]):
                found.append((self.ids[place], float(scores[place])))
        return found


class Reach:
    """Searches one collection so that nothing that the catalog knows of is lost."""

    def __init__(
        self, near: Callable[[Vector, int], Scored], vectors: Callable[[Sequence[str]], Mapping[str, Vector]]
    ) -> None:
        self._near = near
        self._vectors = vectors
        self._lock = threading.Lock()
        self._state: object = None
        self._beside = _Beside((), np.zeros((0, 0), np.float32), whole=False)

    def search(
        self, vector: Vector, k: int, scope: SearchScope, asked: int, state: object, whole: SearchScope
    ) -> Scored:
        """Ids and cosines of the `k` nearest records of a scope; equal cosines go by id.

        `asked` is what the graph is asked for first. `state` is another object whenever the library has changed, and
        `whole` all records that it has in that state.
        """
        beside = self._read(vector, state, whole)
        apart = beside.nearest(vector, k, scope)
        if beside.whole:
            return apart
        while True:
            near = self._near(vector, asked)
            found = {identifier: score for identifier, score in near if scope.holds(identifier)}
            enough, no_more = len(found) >= k, len(near) < asked
            found |= dict(apart)
            if no_more and not enough:
                lost = [identifier for identifier in scope.ids() if identifier not in found]
                found |= cosines(self._vectors(lost), vector)
            if enough or no_more:
                return ordered(found.items())[:k]
            asked *= _WIDENING

    def _read(self, vector: Vector, state: object, whole: SearchScope) -> _Beside:
        with self._lock:
            if self._state is not state:
                ids = whole.ids()
                lacking = ids if len(ids) <= WHOLE_LIMIT else self._lacking(vector, ids)
                alone = len(lacking) > _MOST_LACKING * len(ids)
                found = self._vectors(ids if alone else lacking)
                names = sorted(found)
                rows = np.stack([found[name] for name in names]) if names else self._beside.rows[:0]
                self._beside, self._state = _Beside(names, rows, alone), state
            return self._beside

    def _lacking(self, vector: Vector, ids: Sequence[str]) -> Sequence[str]:
        """What the graph does not lead to, in 6 us of a core for each record; any vector does to ask with."""
        asked = len(ids) + 1
        while len(near := self._near(vector, asked)) >= asked:
            asked *= _WIDENING
        reached = {identifier for identifier, _ in near}
        return [identifier for identifier in ids if identifier not in reached]


def cosines(vectors: Mapping[str, Vector], vector: Vector) -> dict[str, float]:
    """The cosine of each of these vectors of length one with another one, by id."""
    return {identifier: float(np.dot(row, vector)) for identifier, row in vectors.items()}


def ordered(scored: Iterable[tuple[str, float]]) -> Scored:
    """Best first; equal ones by id."""
    return sorted(scored, key=lambda item: (-item[1], item[0]))
