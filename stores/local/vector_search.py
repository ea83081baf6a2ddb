"""Nearest chunks and papers within a scope: exact search in a small scope, else oversampling and filtering."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ...documents import chunk_id, split_chunk_id
from ...models.embeddings.protocol import Vector
from ..paper_change import PaperRecord
from ..scoped_search import ChunkScope, ScopedSearch
from ..search_records import Scored, ordered
from ..store_protocols import PaperRecords
from .exact_search import Reach

if TYPE_CHECKING:
    from .catalog import Catalog
    from .vectors import VectorStore

# A scope of up to this many chunks is searched exactly by id, which takes the same time in a large library as in a
# small one; beyond it, more results than needed are requested from the index and those out of scope are dropped.
_EXACT_LIMIT: Final = 600
_MARGIN: Final = 1.3  # results are not spread evenly over papers and categories


def _passage_count(record: PaperRecord) -> int:
    return len(record.note.spans) if record.note else 0


@dataclass(frozen=True, slots=True)
class _Keys:
    """Search scope over summaries: one per paper."""

    records: Mapping[str, PaperRecord]

    def ids(self) -> list[str]:
        """The keys of the papers."""
        return list(self.records)

    def holds(self, identifier: str) -> bool:
        """Whether the library has this paper."""
        return identifier in self.records


@dataclass(frozen=True, slots=True)
class _Passages:
    """Search scope over the passages of notes."""

    records: Mapping[str, PaperRecord]

    def ids(self) -> list[str]:
        """The ids of the passages of all notes."""
        return [chunk_id(key, place) for key, record in self.records.items() for place in range(_passage_count(record))]

    def holds(self, identifier: str) -> bool:
        """Whether it is a passage of a note in the library."""
        key, place = split_chunk_id(identifier)
        return key in self.records and place < _passage_count(self.records[key])


@dataclass(frozen=True, slots=True)
class _Scope:
    """Search scope over chunks: all those of the papers, or only the `wanted` categories (one byte each)."""

    keys: Collection[str]
    records: Mapping[str, PaperRecord]
    wanted: bytes = b""
    categories: Mapping[str, bytes] = field(default_factory=dict)  # one byte per chunk, by key

    def size(self) -> int:
        """The number of chunks in scope."""
        if self.wanted:
            return sum(self.categories[key].count(kind) for key in self.keys for kind in self.wanted)
        return sum(self.records[key].chunk_count for key in self.keys)

    def ids(self) -> list[str]:
        """The ids of the chunks in scope."""
        return [
            chunk_id(key, index)
            for key in self.keys
            for index in range(self.records[key].chunk_count)
            if not self.wanted or self.categories[key][index] in self.wanted
        ]

    def holds(self, identifier: str) -> bool:
        """Whether a chunk is in scope; it may not be in the library at all."""
        key, index = split_chunk_id(identifier)
        if key not in self.keys or index >= self.records[key].chunk_count:
            return False
        return not self.wanted or self.categories[key][index] in self.wanted


class Nearest(ScopedSearch):
    """Vector search over a library; caches the category of each chunk until the library changes."""

    def __init__(self, records: PaperRecords, store: VectorStore, catalog: Catalog) -> None:
        super().__init__(records)
        self._catalog = catalog
        self._chunks = Reach(store.nearest_ids, store.get_vectors)
        self._summaries = Reach(store.nearest_summaries, store.summary_vectors)
        self._passages = Reach(store.nearest_passages, store.note_vectors)
        self._lock = threading.Lock()
        self._last_whole = _Scope((), {}), 0
        self._read_for: Mapping[str, PaperRecord] | None = None
        self._categories: Mapping[str, bytes] = {}

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        return self._chunks.cosines(vector, ids, self._records())

    def _near_chunks(self, vector: Vector, k: int, scope: ChunkScope) -> Scored:
        records = scope.records
        whole, total = self._whole(records)
        chosen = whole if scope.keys is None else _Scope(scope.keys, records)
        if scope.categories is not None:
            chosen = _Scope(chosen.keys, records, bytes(scope.categories), self._categories_of(records))
        limited = chosen is not whole
        size = chosen.size() if limited else total
        if not size:
            return []
        if limited and size <= _EXACT_LIMIT:
            return ordered(self._chunks.cosines(vector, chosen.ids(), records).items())[:k]
        k = min(k, size)
        asked = k if size == total else min(total, math.ceil(k * _MARGIN * total / size))
        return self._chunks.search(vector, k, chosen, asked, records, whole)

    def _whole(self, records: Mapping[str, PaperRecord]) -> tuple[_Scope, int]:
        """The scope of all chunks and its size, cached while the records stay the same."""
        whole, total = self._last_whole
        if whole.records is not records:
            whole = _Scope(records.keys(), records)
            total = whole.size()
            self._last_whole = whole, total
        return whole, total

    def _near_summaries(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        summaries = _Keys(records)
        return self._summaries.search(vector, k, summaries, k, records, summaries)

    def _near_passages(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        passages = _Passages(records)
        return self._passages.search(vector, k, passages, k, records, passages)

    def _categories_of(self, records: Mapping[str, PaperRecord]) -> Mapping[str, bytes]:
        with self._lock:
            if self._read_for is not records:
                kinds = self._catalog.categories()
                # A paper that another process has changed since the records were read is padded with no category.
                self._categories = {
                    key: kinds.get(key, b"").ljust(record.chunk_count, b"\xff") for key, record in records.items()
                }
                self._read_for = records
            return self._categories
