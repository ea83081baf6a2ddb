"""Nearest-neighbour search without misses: records unreachable in Chroma's HNSW graph are scored by brute force.

Every Chroma client rebuilds the recently written part of the HNSW graph, on several threads and in no fixed order. A
record can end up without an incoming edge: it is stored, `get` returns it, but no query finds it, however many results
are requested. Replacing a vector in place does that to its former neighbours, and among many near duplicates it
happens to some from the start.

So a small collection is searched by brute force, without the graph. In a large one, all reachable records are listed
once for each state of the library, and the unreachable ones are scored in addition to the search results. If many are
unreachable, the rest of the graph is unreliable too, and the collection is searched by brute force regardless of size.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from ...models.embeddings.protocol import Vector, Vectors
from ..search_records import Scored, cosines, ordered

# Records, of 1.5 kB each in memory. Up to this size a search takes a few ms and does without Chroma, whose import takes
# a second.
WHOLE_LIMIT: Final = 20_000
_WIDENING: Final = 4
_MOST_UNREACHABLE: Final = (
    0.01  # share of the records: beyond that, a search for a few misses some that a search for all finds
)


class SearchScope(Protocol):
    """The records that a search may return."""

    def ids(self) -> Sequence[str]:
        """The ids of all records in scope."""
        ...

    def holds(self, identifier: str) -> bool:
        """Whether a record is in scope; the store may hold records that belong to no ready paper."""
        ...


@dataclass(frozen=True, slots=True)
class _BruteForce:
    """Vectors searched by brute force: [n, d], with their ids; `whole` if they are the whole collection."""

    ids: Sequence[str]
    rows: Vectors
    whole: bool
    places: Mapping[str, int] = field(init=False)  # the row of each id

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", {name: place for place, name in enumerate(self.ids)})

    def nearest(self, vector: Vector, k: int, scope: SearchScope) -> Scored:
        """Ids and cosines of the `k` nearest within a scope; equal cosines go by id."""
        if not self.ids:
            return []
        # Not a matrix product, which may round equal rows differently.
        scores = np.einsum("ij,j->i", self.rows, vector)
        found: Scored = []
        for place in np.argsort(-scores, kind="stable"):
            if len(found) == k:
                break
            if scope.holds(self.ids[place]):
                found.append((self.ids[place], float(scores[place])))
        return found


_NOTHING: Final = _BruteForce((), np.zeros((0, 0), np.float32), whole=False)


class Reach:
    """Searches one collection without missing any record that the catalog lists."""

    def __init__(
        self, near: Callable[[Vector, int], Scored], vectors: Callable[[Sequence[str]], Mapping[str, Vector]]
    ) -> None:
        self._near = near
        self._vectors = vectors
        self._lock = threading.Lock()
        self._loaded: tuple[object, _BruteForce] = None, _NOTHING

    def search(
        self, vector: Vector, k: int, scope: SearchScope, asked: int, state: object, whole: SearchScope
    ) -> Scored:
        """Ids and cosines of the `k` nearest records of a scope; equal cosines go by id.

        `asked` is the number of results first requested from the graph. `state` is a different object whenever the
        library has changed, and `whole` covers all records in that state.
        """
        brute_force = self._brute_force_for(vector, state, whole)
        exact = brute_force.nearest(vector, k, scope)
        if brute_force.whole:
            return exact
        while True:
            near = self._near(vector, asked)
            found = {identifier: score for identifier, score in near if scope.holds(identifier)}
            enough, no_more = len(found) >= k, len(near) < asked
            found |= dict(exact)
            if no_more and not enough:
                missed = [identifier for identifier in scope.ids() if identifier not in found]
                found |= cosines(self._vectors(missed), vector)
            if enough or no_more:
                return ordered(found.items())[:k]
            asked *= _WIDENING

    def cosines(self, vector: Vector, ids: Sequence[str], state: object) -> dict[str, float]:
        loaded_for, loaded = self._loaded
        if loaded_for is not state:
            loaded = _NOTHING
        held = {name: loaded.rows[loaded.places[name]] for name in ids if name in loaded.places}
        missing = [name for name in ids if name not in held]
        vectors = {**held, **self._vectors(missing)} if missing else held
        return cosines({name: vectors[name] for name in ids if name in vectors}, vector)

    def _brute_force_for(self, vector: Vector, state: object, whole: SearchScope) -> _BruteForce:
        with self._lock:
            if self._loaded[0] is not state:
                ids = whole.ids()
                unreachable = ids if len(ids) <= WHOLE_LIMIT else self._unreachable(vector, ids)
                use_whole = len(unreachable) > _MOST_UNREACHABLE * len(ids)
                found = self._vectors(ids if use_whole else unreachable)
                names = sorted(found)
                rows = np.stack([found[name] for name in names]) if names else _NOTHING.rows
                self._loaded = state, _BruteForce(names, rows, use_whole)
            return self._loaded[1]

    def _unreachable(self, vector: Vector, ids: Sequence[str]) -> Sequence[str]:
        """Records unreachable in the graph, at 6 us of CPU time per record; any query vector will do."""
        asked = len(ids) + 1
        while len(near := self._near(vector, asked)) >= asked:
            asked *= _WIDENING
        reached = {identifier for identifier, _ in near}
        return [identifier for identifier in ids if identifier not in reached]
