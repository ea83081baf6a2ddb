"""What every backend does in a search for the nearest: check its scope, and repeat it if the library changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar

from ..documents import Category
from ..models.embeddings.protocol import Vector
from .paper_change import PaperRecord
from .search_records import NearPaper, Scored, best_papers, unchanged
from .store_protocols import PaperRecords


@dataclass(frozen=True, slots=True)
class ChunkScope:
    """The chunks of a search: of these papers of the library and of these categories; None sets no limit."""

    records: Mapping[str, PaperRecord]
    keys: AbstractSet[str] | None
    categories: tuple[Category, ...] | None


class ScopedSearch(ABC):
    """The nearest chunks and papers of a library; a backend implements the three searches.

    `_one_state` is true where a single statement finds chunks: it sees one state of the library, the newest, so the
    records that tell how large a scope is need not be those of that state.
    """

    _one_state: ClassVar[bool] = False

    def __init__(self, records: PaperRecords) -> None:
        self._records = records

    def ids(
        self, vector: Vector, k: int, keys: Collection[str] | None, categories: Collection[Category] | None
    ) -> Scored:
        def search(records: Mapping[str, PaperRecord]) -> Scored:
            wanted = None if keys is None else set(keys) if self._one_state else records.keys() & set(keys)
            kinds = None if categories is None else tuple(sorted(set(categories)))
            if k < 1 or not records or kinds == () or (wanted is not None and not wanted):
                return []
            return self._near_chunks(vector, k, ChunkScope(records, wanted, kinds))

        if self._one_state:
            return search(self._records.last())
        return unchanged(self._records, search)

    def papers(self, vector: Vector, k: int) -> list[NearPaper]:
        def search(records: Mapping[str, PaperRecord]) -> list[NearPaper]:
            most = min(k, len(records))
            if most < 1:
                return []
            near = self._near_summaries(vector, most, records)
            # Enough that one note with many passages cannot crowd out another paper's.
            counts = [len(record.note.spans) if record.note else 0 for record in records.values()]
            wanted = min(most * max(counts), sum(counts))
            passages = self._near_passages(vector, wanted, records) if wanted else []
            return best_papers(records, near, passages, most)

        return unchanged(self._records, search)

    @abstractmethod
    def _near_chunks(self, vector: Vector, k: int, scope: ChunkScope) -> Scored:
        """Ids and cosines of the nearest chunks in a scope that is not empty."""

    @abstractmethod
    def _near_summaries(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        """Keys and cosines of the nearest summaries of these papers."""

    @abstractmethod
    def _near_passages(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        """Ids and cosines of the nearest passages of notes of these papers."""
