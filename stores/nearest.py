"""Nearest chunks within a scope: by id where the scope is small, else by asking for more than enough."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from citeloom.documents import Category, Paper, chunk_id, split_chunk_id
from citeloom.models.embedding import Vector
from citeloom.stores.changes import PaperRecord

if TYPE_CHECKING:
    from citeloom.stores.library import Library

# Up to so many chunks a scope is searched by id with an exact product, which takes as long in a large library as in
# a small one; beyond that the index is asked for more than enough and the rest dropped.
_EXACT_LIMIT: Final = 600
_MARGIN: Final = 1.3  # what is near a query is not spread evenly over papers and categories
_WIDENING: Final = 4


@dataclass(frozen=True, slots=True)
class NearPaper:
    """A paper near to a query, with the cosine (-1 to 1) of what is nearest of it.

    `note` is the passage of the user's note that it is near by, empty when it is the summary.
    """

    paper: Paper
    summary: str
    score: float
    note: str = ""


def nearest_papers(library: Library, vector: Vector, k: int) -> list[NearPaper]:
    """The `k` papers whose summary, or a passage of the user's note on them, is nearest; equal ones go by key."""
    records = library.records()
    if k < 1 or not records:
        return []
    unready = len(library.catalog.unfinished())  # another process writes them; what is there of them is not shown
    best = {
        key: NearPaper(records[key].paper, summary, score)
        for key, summary, score in library.store.nearest_summaries(vector, min(len(records), k) + unready)
        if key in records
    }
    # So many that one note of many passages cannot keep out another paper's.
    most = max(len(record.note.spans) if record.note else 0 for record in records.values())
    for identifier, text, score in library.store.nearest_passages(vector, k * most) if most else []:
        key = split_chunk_id(identifier)[0]
        if key in records and (key not in best or score > best[key].score):
            best[key] = NearPaper(records[key].paper, records[key].summary, score, text)
    return sorted(best.values(), key=lambda item: (-item.score, item.paper.key))[:k]


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
        self._lock = threading.Lock()
        self._read_for: Mapping[str, PaperRecord] | None = None
        self._categories: Mapping[str, bytes] = {}

    def ids(
        self, vector: Vector, k: int, keys: Collection[str] | None, categories: Collection[Category] | None
    ) -> list[tuple[str, float]]:
        """Ids and cosines of the `k` nearest chunks of these papers and categories; equal cosines go by chunk id."""
        records = self._library.records()
        papers = records.keys() if keys is None else records.keys() & keys
        scope = _Scope(papers, records)
        if categories is not None:
            scope = _Scope(papers, records, bytes(sorted(set(categories))), self._categories_of(records))
        limited = keys is not None or categories is not None
        size = scope.size() if limited else self._library.chunk_count()
        if k < 1 or not size or (categories is not None and not categories):
            return []
        if limited and size <= _EXACT_LIMIT:
            return _ordered(self._library.cosines(vector, scope.ids()).items())[:k]
        return self._widened(vector, min(k, size), scope, size)

    def _widened(self, vector: Vector, k: int, scope: _Scope, size: int) -> list[tuple[str, float]]:
        total = self._library.chunk_count()
        asked = k if size == total else min(total, math.ceil(k * _MARGIN * total / size))
        while True:
            near = self._library.store.nearest_ids(vector, asked)
            found = [item for item in near if scope.holds(item[0])]
            # Only a store that gives less than it was asked for has no more: while another process writes, it holds
            # chunks of no ready paper, and their number changes from one look to the next.
            if len(found) >= k or len(near) < asked:
                return _ordered(found)[:k]
            asked = asked * _WIDENING if asked > total else min(total + 1, asked * _WIDENING)

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


def _ordered(scored: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(scored, key=lambda item: (-item[1], item[0]))
