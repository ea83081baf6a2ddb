"""Searches in Milvus within a scope, with results that depend only on what is committed.

A result counts if its row belongs to the version of a paper that is in force. Rows of changes that are being written
or wait to be deleted may be among the nearest, and Milvus orders equal scores as it likes: so some results more than
wanted are requested, and more again if these do not decide.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...documents import Category, chunk_id, split_chunk_id
from ...models.embeddings.protocol import Vector
from ..paper_change import PaperRecord
from ..postgres.postgres_vectors import PostgresVectors
from ..search_records import NearPaper, Scored, TextScope, best_papers, cosines, ordered, unchanged
from ..store_protocols import PaperRecords
from .milvus_catalog import MilvusCatalog
from .milvus_rows import MOST_RESULTS, MilvusRows, in_filter
from .row_records import Found, row_id

_MARGIN: Final = 8  # results more than wanted
_WIDENING: Final = 4
_VALUES_AT_ONCE: Final = 5000  # papers or chunks that one filter expression lists
# Scores are floats of 32 bits, whose last digits depend on where a row is.
COSINE_DIGITS: Final = 7
WORD_DIGITS: Final = 5


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions in force, by key, and the other way round."""

    by_key: Mapping[str, int]
    keys: Mapping[int, str]


class CurrentVersions:
    """The versions of papers that readers use, read again when the library changes."""

    def __init__(self, catalog: MilvusCatalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._token: tuple[int, int] | None = None
        self._versions = Versions({}, {})

    def now(self) -> Versions:
        """The current ones."""
        token = self._catalog.revision()
        with self._lock:
            if token != self._token:
                by_key = self._catalog.searched()
                self._versions = Versions(by_key, {version: key for key, version in by_key.items()})
                self._token = token
            return self._versions


def scopes(versions: Versions, scope: TextScope) -> Iterator[str]:
    """The filter expressions whose results together are those of the scope; none if it is empty."""
    kinds = "" if scope.categories is None else in_filter("category", sorted({int(kind) for kind in scope.categories}))
    if scope.categories is not None and not scope.categories:
        return
    if scope.keys is None and scope.ids is None:
        yield kinds
        return
    papers = versions.by_key if scope.keys is None else versions.by_key.keys() & scope.keys
    if scope.ids is None:
        field, values = "paper", sorted(versions.by_key[key] for key in papers)
    else:
        field, values = "id", sorted(_row_ids(scope.ids, papers, versions))
    for start in range(0, len(values), _VALUES_AT_ONCE):
        listed = in_filter(field, values[start : start + _VALUES_AT_ONCE])
        yield f"{listed} and {kinds}" if kinds else listed


def _row_ids(ids: Collection[str], papers: Collection[str], versions: Versions) -> Iterator[int]:
    for identifier in ids:
        try:
            key, place = split_chunk_id(identifier)
        except ValueError:
            continue
        if key in papers:
            yield row_id(versions.by_key[key], place)


def best(
    search: Callable[[int, str], Sequence[Found]],
    k: int,
    filters: Iterator[str],
    name: Callable[[Found], str | None],
    digits: int,
) -> Scored:
    """The `k` best named results of all filters, their scores rounded to `digits`; ties by name."""
    found = [result for scope in filters for result in _best_of(search, k, scope, name, digits)]
    return ordered(found)[:k]


def _best_of(
    search: Callable[[int, str], Sequence[Found]], k: int, scope: str, name: Callable[[Found], str | None], digits: int
) -> Scored:
    limit = min(k + _MARGIN, MOST_RESULTS)
    while True:
        found = search(limit, scope)
        named = ordered(
            (identifier, round(result.score, digits)) for result in found if (identifier := name(result)) is not None
        )
        if len(found) < limit or limit == MOST_RESULTS:
            return named[:k]
        last = round(min(result.score for result in found), digits)
        if len(named) >= k and named[k - 1][1] > last:  # nothing that was not returned is as good
            return named[:k]
        limit = min(limit * _WIDENING, MOST_RESULTS)


class MilvusNearest:
    """Vector search over a library."""

    def __init__(
        self, records: PaperRecords, rows: Callable[[], MilvusRows], versions: CurrentVersions, vectors: PostgresVectors
    ) -> None:
        self._records = records
        self._rows = rows
        self._versions = versions
        self._vectors = vectors

    def ids(
        self, vector: Vector, k: int, keys: Collection[str] | None, categories: Collection[Category] | None
    ) -> Scored:
        return unchanged(self._records, lambda records: self._ids(records, vector, k, TextScope(keys, categories)))

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        return cosines(self._vectors.get_vectors(ids), vector)

    def papers(self, vector: Vector, k: int) -> list[NearPaper]:
        return unchanged(self._records, lambda records: self._papers(records, vector, k))

    def _ids(self, records: Mapping[str, PaperRecord], vector: Vector, k: int, scope: TextScope) -> Scored:
        if k < 1 or not records:
            return []
        versions, rows = self._versions.now(), self._rows()

        def name(found: Found) -> str | None:
            key = versions.keys.get(found.version)
            return chunk_id(key, found.place) if key is not None and key in records else None

        return best(
            lambda limit, expr: rows.nearest(vector, limit, expr), k, scopes(versions, scope), name, COSINE_DIGITS
        )

    def _papers(self, records: Mapping[str, PaperRecord], vector: Vector, k: int) -> list[NearPaper]:
        k = min(k, len(records))
        if k < 1:
            return []
        versions, rows = self._versions.now(), self._rows()
        counts = [len(record.note.spans) if record.note else 0 for record in records.values()]
        wanted = min(k * max(counts), sum(counts))

        def summary(found: Found) -> str | None:
            key = versions.keys.get(found.version)
            return key if key in records else None

        def passage(found: Found) -> str | None:
            key = summary(found)
            record = records[key] if key is not None else None
            there = record is not None and record.note is not None and found.place <= len(record.note.spans)
            return chunk_id(key, found.place - 1) if key is not None and there else None

        def near(passages: bool) -> Callable[[int, str], Sequence[Found]]:
            return lambda limit, _: rows.near_papers(vector, limit, passages=passages)

        summaries = best(near(False), k, iter([""]), summary, COSINE_DIGITS)
        notes = best(near(True), wanted, iter([""]), passage, COSINE_DIGITS) if wanted else []
        return best_papers(records, summaries, notes, k)
