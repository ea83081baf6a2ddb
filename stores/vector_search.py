"""Nearest chunks within a scope: by id where the scope is small, else by asking for more than enough."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from ..documents import Category, Paper, chunk_id, split_chunk_id
from ..models.embeddings.protocol import Vector
from .exact_search import Reach, Scored, ordered
from .paper_change import PaperRecord

if TYPE_CHECKING:
    from .library import Library

# Up to so many chunks a scope is searched by id with an exact product, which takes as long in a large library as in
# a small one; beyond that the index is asked for more than enough and the rest dropped.
_EXACT_LIMIT: Final = 600
_TRIES: Final = 3  # of a search in the midst of which another process has changed the library
_MARGIN: Final = 1.3  # what is near a query is not spread evenly over papers and categories
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class NearPaper:
    """A paper near to a query, with the cosine (-1 to 1) of what is nearest of it.

    `note` is the passage of the user's note that it is near by, empty when it is the summary.
    """

    paper: Paper
    summary: str
    score: float
    note: str = ""


def keys_within(
    records: Mapping[str, PaperRecord],
    keys: Collection[str] | None,
    years: tuple[int, int] | None,
    venue: str | None,
) -> frozenset[str] | None:
    """The keys of the papers that all limits leave; None when there is no limit."""
    if keys is None and years is None and not venue:
        return None
    asked = None if keys is None else frozenset(keys)
    wanted = (venue or "").casefold()
    return frozenset(
        key
        for key, record in records.items()
        if (asked is None or key in asked)
        and (years is None or (record.paper.year is not None and years[0] <= record.paper.year <= years[1]))
        and wanted in record.paper.venue.casefold()
    )


def unchanged(
    records: Callable[[], Mapping[str, PaperRecord]], search: Callable[[Mapping[str, PaperRecord]], Found]
) -> Found:
    """What a search finds while the library stays the same, so that what it sees is of one state."""
    for _ in range(_TRIES - 1):
        before = records()
        found = search(before)
        if records() is before:
            return found
    return search(records())


def _passage_count(record: PaperRecord) -> int:
    return len(record.note.spans) if record.note else 0


@dataclass(frozen=True, slots=True)
class _Keys:
    """The summaries that a search may find: one for each paper."""

    records: Mapping[str, PaperRecord]

    def ids(self) -> list[str]:
        """The keys of the papers."""
        return list(self.records)

    def holds(self, identifier: str) -> bool:
        """Whether the library has the paper."""
        return identifier in self.records


@dataclass(frozen=True, slots=True)
class _Passages:
    """The passages of notes that a search may find."""

    records: Mapping[str, PaperRecord]

    def ids(self) -> list[str]:
        """The passages of all notes."""
        return [chunk_id(key, place) for key, record in self.records.items() for place in range(_passage_count(record))]

    def holds(self, identifier: str) -> bool:
        """Whether it is a passage of the note on a paper that the library has."""
        key, place = split_chunk_id(identifier)
        return key in self.records and place < _passage_count(self.records[key])


@dataclass(frozen=True, slots=True)
class _Scope:
    """The chunks that a search may find: all of the papers, or those of the wanted categories, one byte each."""

    keys: Collection[str]
    records: Mapping[str, PaperRecord]
    wanted: bytes = b""
    categories: Mapping[str, bytes] = field(default_factory=dict)  # of each chunk, by key

    def size(self) -> int:
        """How many chunks it holds."""
        if self.wanted:
            return sum(self.categories[key].count(kind) for key in self.keys for kind in self.wanted)
        return sum(self.records[key].chunk_count for key in self.keys)

    def ids(self) -> list[str]:
        """The chunks it holds."""
        return [
            chunk_id(key, index)
            for key in self.keys
            for index in range(self.records[key].chunk_count)
            if not self.wanted or self.categories[key][index] in self.wanted
        ]

    def holds(self, identifier: str) -> bool:
        """Whether it holds a chunk, which may be none of the library's."""
        key, index = split_chunk_id(identifier)
        if key not in self.keys or index >= self.records[key].chunk_count:
            return False
        return not self.wanted or self.categories[key][index] in self.wanted


class Nearest:
    """Searches a library's chunks by vector; keeps the category of each chunk while nothing changes."""

    def __init__(self, library: Library) -> None:
        self._library = library
        store = library.store
        self._chunks = Reach(store.nearest_ids, store.get_vectors)
        self._summaries = Reach(store.nearest_summaries, store.summary_vectors)
        self._passages = Reach(store.nearest_passages, store.note_vectors)
        self._lock = threading.Lock()
        self._last_whole = _Scope((), {}), 0
        self._read_for: Mapping[str, PaperRecord] | None = None
        self._categories: Mapping[str, bytes] = {}

    def ids(
        self, vector: Vector, k: int, keys: Collection[str] | None, categories: Collection[Category] | None
    ) -> Scored:
        """Ids and cosines of the `k` nearest chunks of these papers and categories; equal cosines go by chunk id."""
        return unchanged(self._library.records, lambda records: self._ids(records, vector, k, keys, categories))

    def papers(self, vector: Vector, k: int) -> list[NearPaper]:
        """The `k` papers whose summary, or a passage of the user's note on them, is nearest; equal ones go by key."""
        return unchanged(self._library.records, lambda records: self._papers(records, vector, k))

    def _ids(
        self,
        records: Mapping[str, PaperRecord],
        vector: Vector,
        k: int,
        keys: Collection[str] | None,
        categories: Collection[Category] | None,
    ) -> Scored:
        whole, total = self._whole(records)
        scope = whole if keys is None else _Scope(records.keys() & keys, records)
        if categories is not None:
            wanted = bytes(sorted(set(categories)))
            scope = _Scope(scope.keys, records, wanted, self._categories_of(records))
        limited = scope is not whole
        size = scope.size() if limited else total
        if k < 1 or not size or (categories is not None and not categories):
            return []
        if limited and size <= _EXACT_LIMIT:
            return ordered(self._library.cosines(vector, scope.ids()).items())[:k]
        k = min(k, size)
        asked = k if size == total else min(total, math.ceil(k * _MARGIN * total / size))
        return self._chunks.search(vector, k, scope, asked, records, whole)

    def _whole(self, records: Mapping[str, PaperRecord]) -> tuple[_Scope, int]:
        """All chunks of these papers, and how many they are; walking the papers is left out where nothing changes."""
        whole, total = self._last_whole
        if whole.records is not records:
            whole = _Scope(records.keys(), records)
            total = whole.size()
            self._last_whole = whole, total
        return whole, total

    def _papers(self, records: Mapping[str, PaperRecord], vector: Vector, k: int) -> list[NearPaper]:
        k = min(k, len(records))
        if k < 1:
            return []
        summaries = _Keys(records)
        near = self._summaries.search(vector, k, summaries, k, records, summaries)
        best = {key: NearPaper(records[key].paper, records[key].summary, score) for key, score in near}
        for identifier, score in self._near_passages(records, vector, k):
            key, place = split_chunk_id(identifier)
            note = records[key].note
            if note is not None and (key not in best or score > best[key].score):
                best[key] = NearPaper(records[key].paper, records[key].summary, score, note.passages[place])
        return sorted(best.values(), key=lambda item: (-item.score, item.paper.key))[:k]

    def _near_passages(self, records: Mapping[str, PaperRecord], vector: Vector, k: int) -> Scored:
        counts = [_passage_count(record) for record in records.values()]
        # So many that one note of many passages cannot keep out another paper's.
        wanted = min(k * max(counts), sum(counts))
        passages = _Passages(records)
        return self._passages.search(vector, wanted, passages, wanted, records, passages) if wanted else []

    def _categories_of(self, records: Mapping[str, PaperRecord]) -> Mapping[str, bytes]:
        with self._lock:
            if self._read_for is not records:
                kinds = self._library.catalog.categories()
                # A paper that another process has changed since the records were read counts as of no category.
                self._categories = {
                    key: kinds.get(key, b"").ljust(record.chunk_count, b"\xff") for key, record in records.items()
                }
                self._read_for = records
            return self._categories
