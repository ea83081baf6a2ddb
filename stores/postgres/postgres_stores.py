"""The stores of a library in a database, and what `doctor` checks: versions, indexes, whether its tables agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ...plurals import counted
from ..metadata_store import MetadataStore
from ..paper_catalog import CurrentRecords
from ..paper_change import Change
from ..store_protocols import LibraryStores
from .bm25 import PostgresWords
from .database import Database, DatabaseTables, SeenRevision
from .postgres_catalog import INDEX, INDEXABLE, PostgresCatalog
from .postgres_vectors import EXACT_LIMIT, PostgresNearest, PostgresVectors

Rows = Callable[[str], list[tuple[Any, ...]]]
State = tuple[bool, str, str]
_OLDEST_SERVER: Final = 130_000  # as `server_version_num` counts: 13.0
_OLDEST_VECTORS: Final = (0, 8)
_VERSIONS: Final = """
SELECT current_setting('server_version'), current_setting('server_version_num')::int,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector'), (SELECT max(number) FROM schema_versions)
"""
_INDEXES: Final = (
    "answers_by_key",
    "checkpoints_by_id",
    "chunks_by_text",
    "postings_by_paper",
    "runs_by_fingerprint",
    "uses_by_answer",
    "uses_by_run",
)
_VALID: Final = """
SELECT i.relname, x.indisvalid FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
WHERE i.relnamespace = current_schema()::regnamespace
"""
_WITHOUT_KEY: Final = """
SELECT c.relname FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname <> 'revision'
    AND NOT EXISTS (SELECT 1 FROM pg_index x WHERE x.indrelid = c.oid AND x.indisprimary)
"""
_COUNTS: Final = """
SELECT (SELECT count(*) FROM papers), (SELECT count(*) FROM word_totals),
    (SELECT count(*) FROM papers WHERE summary_vector IS NOT NULL), (SELECT coalesce(sum(chunk_count), 0) FROM papers),
    (SELECT count(*) FROM chunks), (SELECT coalesce(sum(octet_length(categories)), 0) FROM word_totals)
"""
_DIMENSION: Final = "SELECT coalesce((SELECT value::int FROM facts WHERE name = 'dimension'), 0)"


def database_state(rows: Rows) -> list[State]:
    """The findings, each as (fine, topic, message)."""
    server, number, vectors, tables = rows(_VERSIONS)[0]
    shown, lacks = f"PostgreSQL {server.split()[0]}, pgvector {vectors}, tables of version {tables}", ""
    if number < _OLDEST_SERVER:
        lacks = ": PostgreSQL 13 or newer is needed"
    elif tuple(int(part) for part in vectors.split(".")[:2]) < _OLDEST_VECTORS:
        lacks = ": pgvector 0.8 or newer is needed; ALTER EXTENSION vector UPDATE"
    found = [(not lacks, "database", f"{shown}{lacks}")]

    valid: dict[str, bool] = dict(rows(_VALID))
    missing = [
        *(name for name in _INDEXES if name not in valid),
        *(f"the key of {name}" for (name,) in rows(_WITHOUT_KEY)),
    ]
    broken = sorted(name for name, good in valid.items() if not good and name != INDEX)
    wrong = [f"missing: {name}; restore a backup" for name in missing]
    wrong += [f"{name} is not valid: REINDEX INDEX {name}" for name in broken]
    found += [(False, "indexes", message) for message in wrong]
    found += [] if wrong else [(True, "indexes", f"{len(valid)} indexes are there and valid")]

    papers, words, summaries, listed, chunks, indexed = (int(count) for count in rows(_COUNTS)[0])
    if INDEX in valid:
        message = "vectors are indexed (HNSW)" if valid[INDEX] else f"{INDEX} is not valid: REINDEX INDEX {INDEX}"
        found.append((valid[INDEX], "index", message))
    else:
        wanted = chunks > EXACT_LIMIT and rows(_DIMENSION)[0][0] <= INDEXABLE
        exact = f"none; exact search of {counted(chunks, 'chunk')}"
        found.append((not wanted, "index", f"{exact}; the next ingest builds it" if wanted else exact))

    if papers == words == summaries and listed == chunks == indexed:
        message = f"all agree on {counted(papers, 'paper')} and {counted(chunks, 'chunk')}"
        return [*found, (True, "tables", message)]
    of_papers = f"{counted(papers, 'paper')}, {words} with words, {summaries} with summaries"
    message = f"{of_papers}; {counted(listed, 'chunk')} listed, {chunks} stored, {indexed} with words"
    return [*found, (False, "tables", message)]


class PostgresStores(LibraryStores):
    """Catalog, vectors and words in one database, with a common pool of connections."""

    def __init__(self, database: Database) -> None:
        self._seen = SeenRevision()
        self.catalog: PostgresCatalog = PostgresCatalog(database)
        self.vectors: PostgresVectors = PostgresVectors(database, self._seen)
        self.words = PostgresWords(database, self._seen)
        self.metadata = MetadataStore(DatabaseTables(database))

    def last_seen_revision(self) -> tuple[int, int] | None:
        """A search is one statement, which reads the revision as well."""
        return self._seen.number, 0

    def search(self, records: CurrentRecords) -> PostgresNearest:
        return PostgresNearest(records, self.vectors)

    def state(self) -> list[tuple[bool, str, str]]:
        """Reports versions of server, pgvector and tables, existing indexes, and whether the tables agree."""
        return database_state(self.catalog.rows)

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Do nothing: a staged change is committed as a whole."""
