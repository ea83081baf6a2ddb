"""A library whose catalog, texts and vectors are in PostgreSQL, and which is searched in Milvus.

A change is staged in PostgreSQL, written to Milvus, and committed in PostgreSQL. After an interruption the next writer
repeats it; readers see nothing before the commit. Everything in Milvus can be rebuilt from PostgreSQL.

A result counts only if its row belongs to the current version of a paper. Rows still being written or about to be
deleted may be among the nearest, and Milvus orders ties arbitrarily. So a search requests more results than wanted, and
even more if these are not conclusive.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final, NamedTuple

from ...documents import Chunk, chunk_id
from ...errors import CiteloomError
from ...models.embeddings.protocol import Vector
from ...plurals import counted, some
from ...settings.addresses import VectorsUrl
from .. import store_protocols as protocols
from ..metadata_store import MetadataStore
from ..paper_catalog import Change, CurrentRecords, PaperRecord
from ..postgres.database import Database, DatabaseTables, SeenRevision
from ..postgres.postgres_catalog import database_state
from ..postgres.postgres_vectors import PostgresVectors
from ..store_protocols import FullTextError, LibraryStores, Scored, TextScope, VectorStoreError, sort_scores
from ..tables import split_parts
from ..text_analysis import FULLTEXT_VERSION
from . import milvus_rows as milvus
from .milvus_catalog import TEXT, MilvusCatalog, query_vector, write_papers
from .milvus_rows import CHUNKS, PAPERS, VECTOR, Found, MilvusRows

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
    """A function that returns the current versions of papers, read again when the library has changed."""

    @lru_cache(maxsize=1)
    def read(_: tuple[int, int]) -> Versions:
        by_key = catalog.searched_versions()
        return Versions(by_key, {version: key for key, version in by_key.items()})

    return lambda: read(catalog.revision())


def scope_filters(versions: Versions, scope: TextScope) -> Iterator[str]:
    """The filter expressions that together cover the scope; none if the scope is empty."""
    kinds = ""
    if scope.categories is not None:
        if not scope.categories:
            return
        kinds = milvus.in_filter("category", sorted({int(kind) for kind in scope.categories}))
    if scope.keys is None and scope.ids is None:
        yield kinds
        return
    papers = versions.by_key if scope.keys is None else versions.by_key.keys() & scope.keys
    if scope.ids is None:
        field, values = "paper", sorted(versions.by_key[key] for key in papers)
    else:
        chunks = ((key, index) for key, index in protocols.split_ids(scope.ids) if key in papers)
        field, values = "id", sorted(milvus.row_id(versions.by_key[key], index) for key, index in chunks)
    for part in split_parts(values, _VALUES_AT_ONCE):
        listed = milvus.in_filter(field, part)
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
        limit = min(k + _MARGIN, milvus.MOST_RESULTS)
        while True:
            found = search(limit, scope)
            named = sort_scores((known, round(result.score, digits)) for result in found if (known := name(result)))
            if len(found) < limit or limit == milvus.MOST_RESULTS:
                return named[:k]
            last = round(min(result.score for result in found), digits)
            if len(named) >= k and named[k - 1][1] > last:  # no other row can score as high
                return named[:k]
            limit = min(limit * _WIDENING, milvus.MOST_RESULTS)

    return sort_scores(result for scope in filters for result in search_scope(scope))[:k]


class MilvusNearest(protocols.ScopedSearch):
    """Vector search over a library."""

    def __init__(self, records: CurrentRecords, stores: MilvusStores) -> None:
        super().__init__(records, stores.vectors.get_vectors)
        self._stores = stores

    def _near_chunks(self, vector: Vector, k: int, scope: TextScope, records: Mapping[str, PaperRecord]) -> Scored:
        def name(key: str, place: int) -> str | None:
            return chunk_id(key, place) if key in records else None

        return self._stores.best(CHUNKS, VECTOR, vector, k, scope, name)

    def _near_summaries(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        def name(key: str, _: int) -> str | None:
            return key if key in records else None

        return self._stores.best(PAPERS, VECTOR, vector, k, f"kind == {milvus.SUMMARY}", name)

    def _near_passages(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        def name(key: str, place: int) -> str | None:
            return chunk_id(key, place - 1) if key in records and place <= records[key].passage_count else None

        return self._stores.best(PAPERS, VECTOR, vector, k, f"kind == {milvus.PASSAGE}", name)


_PAPERS_AT_ONCE: Final = 50


class MilvusWords(protocols.WordIndex):
    """The words of all chunks; thread-safe."""

    def __init__(self, stores: MilvusStores) -> None:
        self._stores = stores
        self._catalog = stores.catalog

    def exists(self) -> bool:
        """Whether rows were ever written to Milvus; only a search or `state` tells if they still exist."""
        return self._catalog.name_in_milvus() is not None

    def create(self) -> None:
        self._catalog.clear_words()
        self._catalog.use_milvus(secrets.token_hex(6))
        rows = self._stores.rows()
        rows.drop()
        if dimension := self._catalog.meta("dimension"):
            rows.create(int(dimension))

    def put_all(self, papers: Iterator[tuple[str, Sequence[Chunk]]]) -> None:
        self.put_papers([key for key, _ in papers])

    def put_papers(self, every: Sequence[str]) -> None:
        """Write papers that are not in Milvus yet, from what PostgreSQL holds."""
        records = self._catalog.records()
        for keys in split_parts(every, _PAPERS_AT_ONCE):
            self._catalog.number(keys)
            stored = filter(None, (protocols.read_change(records[key], self._stores.vectors) for key in keys))
            versions = self._stores.versions().by_key
            terms = write_papers(stored, versions, self._stores.rows(), self._catalog.means)
            self._catalog.add_words(chain.from_iterable(terms.values()))

    def entries(self, keys: Collection[str] | None = None) -> dict[str, str]:
        versions = self._stores.versions()
        wanted = None if keys is None else sorted(versions.by_key[key] for key in versions.by_key.keys() & keys)
        rows = self._catalog.chunk_rows(keys=None if keys is None else sorted(keys))
        listed = {row.id: row.text_hash for row in rows}
        entries = {}
        try:
            for version, place, found in self._stores.rows().stored_rows(CHUNKS, wanted):
                if version in versions.keys:
                    name = chunk_id(versions.keys[version], place)
                    same = name in listed and milvus.fingerprint(listed[name]) == found
                    entries[name] = listed[name] if same else f"{found:x}"
        except milvus.MilvusUnavailableError as error:
            raise FullTextError(error.message, help=error.help) from error
        return entries

    def search(self, terms: Sequence[str], k: int, scope: TextScope) -> Scored:
        counts = self._catalog.counts(set(terms)) if terms and k > 0 else {}
        if not counts:
            return []
        return self._stores.best(CHUNKS, milvus.WORDS, query_vector(counts, self._catalog.sums()), k, scope, chunk_id)

    def rarity(self, terms: Collection[str]) -> dict[str, float]:
        counts, total = self._catalog.counts(set(terms)), max(1, self._catalog.sums()[TEXT].chunks)
        return {term: 1 - min(total, counts.get((term, TEXT), 0)) / (total + 1) for term in terms}


_DRIFT: Final = 1.25  # change of the mean text length from which weights are recalculated
_LEAST_WEIGHED: Final = 1000  # chunks; fewer give no reliable mean


class MilvusStores(LibraryStores):
    """Catalog, texts and vectors in PostgreSQL; their search in Milvus, connected on first use."""

    def __init__(self, database: Database, url: VectorsUrl) -> None:
        self.catalog: MilvusCatalog = MilvusCatalog(database)
        self.vectors: PostgresVectors = PostgresVectors(database, SeenRevision())
        self.metadata = MetadataStore(DatabaseTables(database))
        self._connection = milvus.MilvusConnection(url)
        self.versions = current_versions(self.catalog)
        self._known: MilvusRows | None = None
        self.words: MilvusWords = MilvusWords(self)

    def rows(self) -> MilvusRows:
        if self._known is None:
            name = self.catalog.name_in_milvus()
            if name is None:
                raise VectorStoreError(f"{self._connection.url}: this library was never written to Milvus.")
            self._known = MilvusRows(self._connection, name)
        return self._known

    def best(
        self, kind: str, field: str, query: Any, k: int, scope: TextScope | str, name: Callable[[str, int], str | None]
    ) -> Scored:
        """The best rows in a scope or filter; `name` makes their names from the paper's key and the row's place."""
        versions, rows = self.versions(), self.rows()

        def name_row(found: Found) -> str | None:
            return name(versions.keys[found.version], found.place) if found.version in versions.keys else None

        filters = [scope] if isinstance(scope, str) else scope_filters(versions, scope)
        digits = COSINE_DIGITS if field == VECTOR else WORD_DIGITS
        return best_results(partial(rows.search, kind, field, query), k, filters, name_row, digits)

    def search(self, records: CurrentRecords) -> MilvusNearest:
        return MilvusNearest(records, self)

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Write staged changes to Milvus, commit them, and delete the replaced rows; idempotent."""
        versions = self.catalog.staged_versions([change.key for change in changes])
        terms = write_papers(changes, versions, self.rows(), self.catalog.means)
        self.catalog.commit(changes, versions, terms)
        self._drop_outdated()

    def _drop_outdated(self) -> None:
        versions = self.catalog.outdated_versions()
        if versions:
            self.rows().delete(versions)
            self.catalog.forget_outdated(versions)

    def state(self) -> list[tuple[bool, str, str]]:
        """Report engine versions, the state of the indexes, and whether Milvus has the rows of all papers."""
        database = [finding for finding in database_state(self.catalog.rows) if finding[1] == "database"]
        if self.catalog.name_in_milvus() is None and not self.catalog.records():
            return [*database, (True, "Milvus", f"nothing written yet, at {self._connection.url}")]
        try:
            about, wrong = self.rows().state()
            rows, differing, unnumbered, strange = self._compare()
        except CiteloomError as error:
            return [*database, (False, "Milvus", f"{error.message.rstrip('.')}; {error.help}".rstrip("; "))]
        found = [(True, "Milvus", f"{about}, at {self._connection.url}")]
        wrong += self._check_drift()
        if papers := sorted(differing | unnumbered):
            wrong.append(f"rows are missing or belong to another text, for: {some(papers)}; run 'doctor --repair'")
        if strange:
            wrong.append(f"rows of {counted(len(strange), 'change')} without a paper; run 'doctor --repair'")
        found += [(False, "Milvus", message) for message in wrong]
        if not wrong:
            found.append((True, "rows", f"Milvus has {counted(rows, 'row')}, those of the database"))
        return [*database, *found]

    def _check_drift(self) -> list[str]:
        sums = self.catalog.sums()
        if sums[TEXT].chunks < _LEAST_WEIGHED:
            return []
        weighed, now = self.catalog.means(sums)[TEXT], sums[TEXT].mean
        if max(weighed / now, now / weighed) < _DRIFT:
            return []
        return [
            f"word weights assume texts of {weighed:.0f} terms, but texts now have {now:.0f}; run 'doctor --repair'"
        ]

    def restore(self) -> list[str]:
        rows = self.rows()
        records = self.catalog.records()
        if rows.missing() or self._check_drift():
            self.catalog.set_meta("fulltext", "building")  # if killed from here on, the next open rebuilds it
            self.words.create()
            self.words.put_papers(list(records))
            self.catalog.set_meta("fulltext", FULLTEXT_VERSION)
            return list(records)
        self._drop_outdated()
        _, differing, unnumbered, strange = self._compare()
        rows.delete(sorted(strange | {self.versions().by_key[key] for key in differing}))
        self.catalog.number(unnumbered)
        keys = sorted(differing | unnumbered)
        stored = filter(None, (protocols.read_change(records[key], self.vectors) for key in keys))
        write_papers(stored, self.versions().by_key, rows, self.catalog.means)
        return keys

    def _compare(self) -> tuple[int, set[str], set[str], set[int]]:
        """Compare the places and texts of all rows; raises `VectorStoreError` if there are no collections.

        Returns the number of rows, the papers with missing, extra or outdated rows, the papers without a version, and
        the versions without a paper.
        """
        versions, records = self.catalog.searched_versions(), self.catalog.records()
        expected = {
            key: {(PAPERS, place, 0) for place in range(1 + record.passage_count)} for key, record in records.items()
        }
        for row in self.catalog.chunk_rows():
            expected[row.key].add((CHUNKS, row.index, milvus.fingerprint(row.text_hash)))
        found: dict[int, set[tuple[str, int, int]]] = defaultdict(set)  # by version
        for kind in (CHUNKS, PAPERS):
            for version, place, content in self.rows().stored_rows(kind):
                found[version].add((kind, place, content))
        rows = sum(map(len, found.values()))
        differing = {key for key in versions.keys() & records if found.get(versions[key]) != expected[key]}
        pending = {*self.catalog.outdated_versions(), *self.catalog.staged_versions(self.catalog.unfinished()).values()}
        strange = found.keys() - {versions[key] for key in versions.keys() & records} - pending
        return rows, differing, records.keys() - versions.keys(), strange

    def close(self) -> None:
        self._connection.close()
        super().close()
