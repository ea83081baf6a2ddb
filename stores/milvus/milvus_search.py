"""Searches in Milvus within a scope, with results that depend only on committed data.

A result counts only if its row belongs to the current version of a paper. Rows still being written or about to be
deleted may be among the nearest, and Milvus orders ties arbitrarily. So a search requests more results than wanted, and
repeats with even more if these are not conclusive.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from ...documents import Chunk, chunk_id
from ...models.embeddings.protocol import Vector
from ..paper_catalog import CurrentRecords
from ..paper_change import PaperRecord
from ..postgres.postgres_vectors import PostgresVectors
from ..search_records import FullTextError, ScopedSearch, Scored, TextScope, sort_scores, split_ids
from ..store_protocols import WordIndex, read_change
from .milvus_catalog import MilvusCatalog
from .milvus_connection import MilvusUnavailableError
from .milvus_rows import (
    CHUNKS,
    MOST_RESULTS,
    PAPERS,
    PASSAGE,
    SUMMARY,
    VECTOR,
    WORDS,
    Found,
    MilvusRows,
    fingerprint,
    in_filter,
    row_id,
)
from .word_weights import TEXT, query_vector, write_papers

_MARGIN: Final = 8  # extra results to request
_WIDENING: Final = 4
_VALUES_AT_ONCE: Final = 5000  # papers or chunks that one filter expression lists
# Scores are 32-bit floats, whose last digits depend on where a row is stored.
COSINE_DIGITS: Final = 7
WORD_DIGITS: Final = 5


class Versions(NamedTuple):
    """The current versions by key, and the keys by version."""

    by_key: Mapping[str, int]
    keys: Mapping[int, str]


def current_versions(catalog: MilvusCatalog) -> Callable[[], Versions]:
    """Returns the current versions of papers, read again when the library has changed."""

    @lru_cache(maxsize=1)
    def read(_: tuple[int, int]) -> Versions:
        by_key = catalog.searched()
        return Versions(by_key, {version: key for key, version in by_key.items()})

    return lambda: read(catalog.revision())


def scope_filters(versions: Versions, scope: TextScope) -> Iterator[str]:
    """The filter expressions that together cover the scope; none if it is empty."""
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
        chunks = ((key, index) for key, index in split_ids(scope.ids) if key in papers)
        field, values = "id", sorted(row_id(versions.by_key[key], index) for key, index in chunks)
    for start in range(0, len(values), _VALUES_AT_ONCE):
        listed = in_filter(field, values[start : start + _VALUES_AT_ONCE])
        yield f"{listed} and {kinds}" if kinds else listed


def best_results(
    search: Callable[[int, str], Sequence[Found]],
    k: int,
    filters: Iterable[str],
    name: Callable[[Found], str | None],
    digits: int,
) -> Scored:
    """The `k` best named results of all filters, their scores rounded to `digits`; ties by name."""

    def search_scope(scope: str) -> Scored:
        limit = min(k + _MARGIN, MOST_RESULTS)
        while True:
            found = search(limit, scope)
            named = sort_scores((known, round(result.score, digits)) for result in found if (known := name(result)))
            if len(found) < limit or limit == MOST_RESULTS:
                return named[:k]
            last = round(min(result.score for result in found), digits)
            if len(named) >= k and named[k - 1][1] > last:  # no other row can score as high
                return named[:k]
            limit = min(limit * _WIDENING, MOST_RESULTS)

    return sort_scores(result for scope in filters for result in search_scope(scope))[:k]


class MilvusNearest(ScopedSearch):
    """Vector search over a library."""

    def __init__(
        self,
        records: CurrentRecords,
        rows: Callable[[], MilvusRows],
        versions: Callable[[], Versions],
        vectors: PostgresVectors,
    ) -> None:
        super().__init__(records, vectors.get_vectors)
        self._rows = rows
        self._versions = versions

    def _near_chunks(self, vector: Vector, k: int, scope: TextScope, records: Mapping[str, PaperRecord]) -> Scored:
        return self._nearest(CHUNKS, vector, k, lambda versions: scope_filters(versions, scope), chunk_id, records)

    def _near_summaries(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        return self._nearest(PAPERS, vector, k, lambda _: [f"kind == {SUMMARY}"], lambda key, _: key, records)

    def _near_passages(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        def name(key: str, place: int) -> str | None:
            return chunk_id(key, place - 1) if place <= records[key].passage_count else None

        return self._nearest(PAPERS, vector, k, lambda _: [f"kind == {PASSAGE}"], name, records)

    def _nearest(
        self,
        kind: str,
        vector: Vector,
        k: int,
        filters: Callable[[Versions], Iterable[str]],
        name: Callable[[str, int], str | None],
        records: Mapping[str, PaperRecord],
    ) -> Scored:
        """The nearest rows of papers in `records`, by names made of the paper's key and the row's place in it."""
        versions, rows = self._versions(), self._rows()

        def name_row(found: Found) -> str | None:
            key = versions.keys.get(found.version)
            return name(key, found.place) if key is not None and key in records else None

        def search(limit: int, scope: str) -> list[Found]:
            return rows.search(kind, VECTOR, vector, limit, scope)

        return best_results(search, k, filters(versions), name_row, COSINE_DIGITS)


_PAPERS_AT_ONCE: Final = 50


class MilvusWords(WordIndex):
    """The words of all chunks; thread-safe."""

    def __init__(
        self,
        catalog: MilvusCatalog,
        vectors: PostgresVectors,
        rows: Callable[[], MilvusRows],
        versions: Callable[[], Versions],
    ) -> None:
        self._catalog = catalog
        self._vectors = vectors
        self._rows = rows
        self._versions = versions

    def exists(self) -> bool:
        """Whether the library's rows were ever written to Milvus; only a search or `state` tells if they still are."""
        return self._catalog.name_in_milvus() is not None

    def create(self) -> None:
        self._catalog.clear_words()
        self._catalog.use_milvus(secrets.token_hex(6))
        rows = self._rows()
        rows.drop()
        if dimension := self._catalog.meta("dimension"):
            rows.create(int(dimension))

    def put_all(self, papers: Iterator[tuple[str, Sequence[Chunk]]]) -> None:
        self.put_papers([key for key, _ in papers])

    def put_papers(self, every: Sequence[str]) -> None:
        """Write papers that are not in Milvus yet, from what PostgreSQL holds."""
        records = self._catalog.records()
        for start in range(0, len(every), _PAPERS_AT_ONCE):
            keys = every[start : start + _PAPERS_AT_ONCE]
            self._catalog.number(keys)
            stored = filter(None, (read_change(records[key], self._vectors) for key in keys))
            versions = self._versions().by_key
            self._catalog.add_words(write_papers(stored, versions, self._rows(), self._catalog.means))

    def entries(self, keys: Collection[str] | None = None) -> dict[str, str]:
        versions = self._versions()
        wanted = None if keys is None else sorted(versions.by_key[key] for key in versions.by_key.keys() & keys)
        rows = self._catalog.chunk_rows(keys=None if keys is None else sorted(keys))
        listed = {row.id: row.text_hash for row in rows}
        entries = {}
        try:
            for version, place, found in self._rows().stored(CHUNKS, wanted):
                if version in versions.keys:
                    name = chunk_id(versions.keys[version], place)
                    same = name in listed and fingerprint(listed[name]) == found
                    entries[name] = listed[name] if same else f"{found:x}"
        except MilvusUnavailableError as error:
            raise FullTextError(error.message, help=error.help) from error
        return entries

    def search(self, terms: Sequence[str], k: int, scope: TextScope) -> Scored:
        counts = self._catalog.counts(set(terms)) if terms and k > 0 else {}
        if not counts:
            return []
        query, versions, rows = query_vector(counts, self._catalog.sums()), self._versions(), self._rows()

        def name(found: Found) -> str | None:
            key = versions.keys.get(found.version)
            return None if key is None else chunk_id(key, found.place)

        def search(limit: int, within: str) -> list[Found]:
            return rows.search(CHUNKS, WORDS, query, limit, within)

        return best_results(search, k, scope_filters(versions, scope), name, WORD_DIGITS)

    def rarity(self, terms: Collection[str]) -> dict[str, float]:
        counts, total = self._catalog.counts(set(terms)), max(1, self._catalog.sums()[TEXT].chunks)
        return {term: 1 - min(total, counts.get((term, TEXT), 0)) / (total + 1) for term in terms}
