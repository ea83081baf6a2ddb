"""A library whose catalog, texts and vectors are in PostgreSQL, and which is searched in Milvus.

A change is staged in PostgreSQL, written to Milvus, and committed in PostgreSQL. If this is interrupted, the next
writer repeats it; readers see nothing before the commit. Everything in Milvus can be rebuilt from PostgreSQL.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from ...errors import CiteloomError
from ...plurals import counted, some
from ...settings.addresses import VectorsUrl
from ..metadata_store import MetadataStore
from ..paper_catalog import CurrentRecords
from ..paper_change import Change
from ..postgres.database import Database, DatabaseTables, SeenRevision
from ..postgres.postgres_stores import database_state
from ..postgres.postgres_vectors import PostgresVectors
from ..search_records import VectorStoreError
from ..store_protocols import LibraryStores, read_change
from ..text_analysis import FULLTEXT_VERSION
from .milvus_catalog import MilvusCatalog
from .milvus_connection import MilvusConnection
from .milvus_rows import CHUNKS, PAPERS, MilvusRows, fingerprint
from .milvus_search import MilvusNearest, MilvusWords, current_versions
from .word_weights import TEXT, write_papers

_DRIFT: Final = 1.25  # change of the mean text length from which weights are recalculated
_LEAST_WEIGHED: Final = 1000  # chunks; fewer give no reliable mean


class MilvusStores(LibraryStores):
    """Catalog, texts and vectors in PostgreSQL; their search in Milvus, connected on first use."""

    def __init__(self, database: Database, url: VectorsUrl) -> None:
        self.catalog: MilvusCatalog = MilvusCatalog(database)
        self.vectors: PostgresVectors = PostgresVectors(database, SeenRevision())
        self.metadata = MetadataStore(DatabaseTables(database))
        self._connection = MilvusConnection(url)
        self._versions = current_versions(self.catalog)
        self._known: MilvusRows | None = None
        self.words: MilvusWords = MilvusWords(self.catalog, self.vectors, self._rows, self._versions)

    def _rows(self) -> MilvusRows:
        if self._known is None:
            name = self.catalog.name_in_milvus()
            if name is None:
                raise VectorStoreError(f"{self._connection.url}: this library was never written to Milvus.")
            self._known = MilvusRows(self._connection, name)
        return self._known

    def search(self, records: CurrentRecords) -> MilvusNearest:
        return MilvusNearest(records, self._rows, self._versions, self.vectors)

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Write staged changes to Milvus, commit them, and delete the rows that they replace; idempotent."""
        versions = self.catalog.staged_versions([change.key for change in changes])
        words = write_papers(changes, versions, self._rows(), self.catalog.means)
        self.catalog.commit(changes, versions, words)
        self._drop_outdated()

    def _drop_outdated(self) -> None:
        versions = self.catalog.outdated()
        if versions:
            self._rows().delete(versions)
            self.catalog.forget_outdated(versions)

    def state(self) -> list[tuple[bool, str, str]]:
        """Reports engine versions, index state, and whether Milvus has the rows of all papers."""
        database = [finding for finding in database_state(self.catalog.rows) if finding[1] == "database"]
        if self.catalog.name_in_milvus() is None and not self.catalog.records():
            return [*database, (True, "Milvus", f"nothing written yet, at {self._connection.url}")]
        try:
            about, wrong = self._rows().state()
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
        rows = self._rows()
        records = self.catalog.records()
        if rows.missing() or self._check_drift():
            self.catalog.set_meta("fulltext", "building")  # if killed from here on, the next open rebuilds it
            self.words.create()
            self.words.put_papers(list(records))
            self.catalog.set_meta("fulltext", FULLTEXT_VERSION)
            return list(records)
        self._drop_outdated()
        _, differing, unnumbered, strange = self._compare()
        rows.delete(sorted(strange | {self._versions().by_key[key] for key in differing}))
        self.catalog.number(unnumbered)
        keys = sorted(differing | unnumbered)
        stored = filter(None, (read_change(records[key], self.vectors) for key in keys))
        write_papers(stored, self._versions().by_key, rows, self.catalog.means)
        return keys

    def _compare(self) -> tuple[int, set[str], set[str], set[int]]:
        """Compare the places and texts of all rows; raises `VectorStoreError` if there are no collections.

        Returns the number of rows, the papers with missing, extra or outdated ones, those without a version, and the
        versions without a paper.
        """
        versions, records = self.catalog.searched(), self.catalog.records()
        expected = {
            key: {(PAPERS, place, 0) for place in range(1 + record.passage_count)} for key, record in records.items()
        }
        for row in self.catalog.chunk_rows():
            expected[row.key].add((CHUNKS, row.index, fingerprint(row.text_hash)))
        found: dict[int, set[tuple[str, int, int]]] = defaultdict(set)  # by version
        for kind in (CHUNKS, PAPERS):
            for version, place, content in self._rows().stored(kind):
                found[version].add((kind, place, content))
        rows = sum(map(len, found.values()))
        differing = {key for key in versions.keys() & records if found.get(versions[key]) != expected[key]}
        pending = {*self.catalog.outdated(), *self.catalog.staged_versions(self.catalog.unfinished()).values()}
        strange = found.keys() - {versions[key] for key in versions.keys() & records} - pending
        return rows, differing, records.keys() - versions.keys(), strange

    def close(self) -> None:
        self._connection.close()
        super().close()
