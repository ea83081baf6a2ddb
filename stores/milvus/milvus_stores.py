"""A library whose catalog, texts and vectors are in PostgreSQL, and which is searched in Milvus.

A change is staged in PostgreSQL, written to Milvus, and committed in PostgreSQL. If this is interrupted, the next
writer repeats it; readers see nothing before the commit. Everything in Milvus can be rebuilt from PostgreSQL.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ...errors import CiteloomError
from ...plurals import counted
from ...settings.addresses import VectorsUrl
from ..metadata_store import MetadataStore
from ..paper_catalog import CurrentRecords
from ..paper_change import Change
from ..postgres.database import Database, DatabaseTables, SeenRevision
from ..postgres.database_state import database_state
from ..postgres.postgres_vectors import PostgresVectors
from ..search_records import VectorStoreError
from ..store_protocols import LibraryStores, read_change
from ..text_analysis import FULLTEXT_VERSION
from .milvus_catalog import MilvusCatalog
from .milvus_connection import MilvusConnection
from .milvus_rows import CHUNKS, PAPERS, MilvusRows, fingerprint
from .milvus_search import CurrentVersions, MilvusNearest, MilvusWords
from .word_weights import TEXT, write_papers

_DRIFT: Final = 1.25  # change of the mean text length from which weights are recalculated
_LEAST_WEIGHED: Final = 1000  # chunks; fewer give no reliable mean


class MilvusStores(LibraryStores):
    """Catalog, texts and vectors in PostgreSQL; their search in Milvus, connected on first use."""

    def __init__(self, database: Database, url: VectorsUrl) -> None:
        pool = database.pool()
        self.catalog: MilvusCatalog = MilvusCatalog(database, pool)
        self.vectors: PostgresVectors = PostgresVectors(database, pool, SeenRevision())
        self.metadata = MetadataStore(DatabaseTables(database, pool))
        self._connection = MilvusConnection(url)
        self._versions = CurrentVersions(self.catalog)
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
            lost = compare(self.catalog, self._rows())
        except CiteloomError as error:
            return [*database, (False, "Milvus", f"{error.message.rstrip('.')}; {error.help}".rstrip("; "))]
        found = [(True, "Milvus", f"{about}, at {self._connection.url}")]
        found += [(False, "Milvus", message) for message in [*wrong, *self._check_drift(), *lost.messages()]]
        if len(found) == 1:
            found.append((True, "rows", f"Milvus has {counted(lost.rows, 'row')}, those of the database"))
        return [*database, *found]

    def _check_drift(self) -> list[str]:
        sums = self.catalog.sums()
        if sums[TEXT].chunks < _LEAST_WEIGHED:
            return []
        weighed, now = self.catalog.means(sums)[TEXT], sums[TEXT].mean
        if max(weighed / now, now / weighed) < _DRIFT:
            return []
        return [f"words are weighed for texts of {weighed:.0f} terms, but they have {now:.0f}; run 'doctor --repair'"]

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
        lost = compare(self.catalog, rows)
        rows.delete(sorted(lost.strange | {self._versions.now().by_key[key] for key in lost.differing}))
        self.catalog.number(lost.unnumbered)
        keys = sorted(lost.differing | lost.unnumbered)
        stored = filter(None, (read_change(records[key], self.vectors) for key in keys))
        write_papers(stored, self._versions.now().by_key, rows, self.catalog.means)
        return keys

    def close(self) -> None:
        self._connection.close()
        super().close()


_SHOWN = 5


@dataclass(frozen=True, slots=True)
class RowDifferences:
    """`differing` papers have missing, extra or outdated rows; `strange` versions belong to no paper.

    `unnumbered` papers have no version. `rows` is the number of all rows.
    """

    rows: int
    differing: frozenset[str]
    unnumbered: frozenset[str]
    strange: frozenset[int]

    def messages(self) -> list[str]:
        """One line for each kind of difference."""
        lines = []
        if papers := sorted(self.differing | self.unnumbered):
            more = f" and {len(papers) - _SHOWN} more" if len(papers) > _SHOWN else ""
            shown = ", ".join(papers[:_SHOWN])
            lines.append(f"rows are missing, or of another text, for: {shown}{more}; run 'doctor --repair'")
        if self.strange:
            lines.append(f"rows of {counted(len(self.strange), 'change')} without a paper; run 'doctor --repair'")
        return lines


def compare(catalog: MilvusCatalog, rows: MilvusRows) -> RowDifferences:
    """Compare the places and texts of all rows; raises `VectorStoreError` if there are no collections."""
    versions, records = catalog.searched(), catalog.records()
    expected: dict[str, set[tuple[int, int]]] = {key: set() for key in records}
    for row in catalog.chunk_rows():
        expected[row.key].add((row.index, fingerprint(row.text_hash)))
    chunks, papers = _by_version(rows.stored(CHUNKS)), _by_version(rows.stored(PAPERS))
    differing = set()
    for key, record in records.items():
        version = versions.get(key, -1)
        same = chunks.get(version, set()) == expected[key]
        if not same or papers.get(version, set()) != {(place, 0) for place in range(1 + record.passage_count)}:
            differing.add(key)
    pending = {*catalog.outdated(), *catalog.staged_versions(catalog.unfinished()).values()}
    known = {versions[key] for key in versions.keys() & records.keys()} | pending
    return RowDifferences(
        sum(map(len, chunks.values())) + sum(map(len, papers.values())),
        frozenset(differing & versions.keys()),
        frozenset(records.keys() - versions.keys()),
        frozenset((chunks.keys() | papers.keys()) - known),
    )


def _by_version(rows: Iterable[tuple[int, int, int]]) -> dict[int, set[tuple[int, int]]]:
    found: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for version, place, content in rows:
        found[version].add((place, content))
    return found
