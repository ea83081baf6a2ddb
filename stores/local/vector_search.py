"""Nearest chunks and papers within a scope: exact search in a small scope, else oversampling and filtering."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from ...documents import chunk_id, split_chunk_id
from ...models.embeddings.protocol import Vector, Vectors
from ..paper_catalog import CurrentRecords, PaperRecord, ReadOnce
from ..store_protocols import ScopedSearch, Scored, TextScope, VectorKind, VectorStoreError, cosines, sort_scores

if TYPE_CHECKING:
    from .catalog import Catalog


# A scope of up to this many chunks is searched exactly by id, which takes the same time in a large library as in a
# small one; beyond it, more results than needed are requested from the index and those out of scope are dropped.
_EXACT_LIMIT: Final = 600
_MARGIN: Final = 1.3  # results are not spread evenly over papers and categories


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The records that a search may return: all ids, and a test of membership.

    The store may hold other records, which belong to no ready paper.
    """

    ids: Callable[[], Sequence[str]]
    holds: Callable[[str], bool]


def _chunk_scope(
    records: Mapping[str, PaperRecord], keys: Collection[str], wanted: bytes, categories: Mapping[str, bytes]
) -> tuple[SearchScope, int]:
    """The scope of these papers' chunks in the `wanted` categories (a byte each; if empty, all), and their number.

    `categories` has a byte for each chunk of a paper, by key.
    """

    def inside(key: str, index: int) -> bool:
        there = key in keys and index < records[key].chunk_count
        return there and (not wanted or categories[key][index] in wanted)

    def ids() -> list[str]:
        places = ((key, index) for key in keys for index in range(records[key].chunk_count))
        return [chunk_id(*place) for place in places if inside(*place)]

    counts = (sum(map(categories[key].count, wanted)) if wanted else records[key].chunk_count for key in keys)
    return SearchScope(ids, lambda name: inside(*split_chunk_id(name))), sum(counts)


class Nearest(ScopedSearch):
    """Vector search over a library; caches the category of each chunk until the library changes."""

    def __init__(
        self, records: CurrentRecords, catalog: Catalog, near: Callable[[VectorKind, Vector, int], Scored]
    ) -> None:
        super().__init__(records, partial(catalog.read_vectors, "content"))
        self._catalog = catalog
        kinds: tuple[VectorKind, ...] = ("content", "summaries", "notes")
        self._chunks, self._summaries, self._passages = (
            Reach(partial(near, kind), partial(catalog.read_vectors, kind)) for kind in kinds
        )
        self._whole = ReadOnce[tuple[SearchScope, int]]()  # all chunks, and their number
        self._categories = ReadOnce[Mapping[str, bytes]]()

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        return self._chunks.cosines(vector, ids, self._records())

    def _near_chunks(self, vector: Vector, k: int, scope: TextScope, records: Mapping[str, PaperRecord]) -> Scored:
        whole, total = self._whole.get(records, lambda: _chunk_scope(records, records.keys(), b"", {}))
        chosen, size = whole, total
        if scope.keys is not None or scope.categories is not None:

            def read() -> Mapping[str, bytes]:
                kinds = self._catalog.categories()
                # A paper that another process has changed since the records were read is padded with no category.
                return {key: kinds.get(key, b"").ljust(each.chunk_count, b"\xff") for key, each in records.items()}

            categories = {} if scope.categories is None else self._categories.get(records, read)
            keys = records.keys() if scope.keys is None else scope.keys
            chosen, size = _chunk_scope(records, keys, bytes(scope.categories or ()), categories)
            if size <= _EXACT_LIMIT:
                return sort_scores(self._chunks.cosines(vector, chosen.ids(), records).items())[:k] if size else []
        k = min(k, size)
        asked = k if size == total else min(total, math.ceil(k * _MARGIN * total / size))
        return self._chunks.search(vector, k, chosen, asked, records, whole) if size else []

    def _near_summaries(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        whole = SearchScope(lambda: list(records), records.__contains__)
        return self._summaries.search(vector, k, whole, k, records, whole)

    def _near_passages(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        names = {chunk_id(key, place) for key, record in records.items() for place in range(record.passage_count)}
        whole = SearchScope(lambda: list(names), names.__contains__)
        return self._passages.search(vector, k, whole, k, records, whole)


# Records, of 1.5 kB each in memory. Up to this size a search takes a few ms and does without Chroma, whose import takes
# a second.
WHOLE_LIMIT: Final = 20_000
_WIDENING: Final = 4
_MOST_UNREACHABLE: Final = 0.01  # of the records; if more are unreachable, searches with a small `k` miss others too


class _BruteForce:
    """Vectors searched by brute force: [n, d], with their ids; `whole` if they are the whole collection."""

    def __init__(self, ids: Sequence[str], rows: Vectors, *, whole: bool) -> None:
        self.ids, self.rows, self.whole = ids, rows, whole
        self.places = {name: place for place, name in enumerate(ids)}  # the row of each id

    def nearest(self, vector: Vector, k: int, scope: SearchScope) -> Scored:
        if not self.ids:
            return []
        # Not a matrix product, which may round identical rows differently.
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
        with self._lock:
            if self._loaded[0] is not state:
                ids = whole.ids()
                unreachable = ids if len(ids) <= WHOLE_LIMIT else self._unreachable(vector, ids)
                use_whole = len(unreachable) > _MOST_UNREACHABLE * len(ids)
                read = self._read(ids if use_whole else unreachable, vector)
                names = sorted(read)
                rows = np.stack([read[name] for name in names]) if names else _NOTHING.rows
                self._loaded = state, _BruteForce(names, rows, whole=use_whole)
            brute_force = self._loaded[1]
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
                found |= cosines(self._read(missed, vector), vector)
            if enough or no_more:
                return sort_scores(found.items())[:k]
            asked *= _WIDENING

    def cosines(self, vector: Vector, ids: Sequence[str], state: object) -> dict[str, float]:
        loaded_for, loaded = self._loaded
        if loaded_for is not state:
            loaded = _NOTHING
        held = {name: loaded.rows[loaded.places[name]] for name in ids if name in loaded.places}
        if missing := [name for name in ids if name not in held]:
            held |= self._read(missing, vector)
        return cosines({name: held[name] for name in ids if name in held}, vector)

    def _read(self, ids: Sequence[str], vector: Vector) -> Mapping[str, Vector]:
        found = self._vectors(ids)
        if wrong := next((name for name, row in found.items() if len(row) != len(vector)), None):
            place = f"table vectors, column size, row key={wrong.rpartition(':')[0] or wrong!r}"
            raise VectorStoreError(f"catalog.sqlite: {place}: expected {len(vector)}, not {len(found[wrong])}.")
        return found

    def _unreachable(self, vector: Vector, ids: Sequence[str]) -> Sequence[str]:
        """The records unreachable in the graph, found with any query vector at 6 us of CPU time per record."""
        asked = len(ids) + 1
        while len(near := self._near(vector, asked)) >= asked:
            asked *= _WIDENING
        reached = {identifier for identifier, _ in near}
        return [identifier for identifier in ids if identifier not in reached]
