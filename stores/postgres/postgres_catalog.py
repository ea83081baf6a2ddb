"""A library in PostgreSQL: its catalog and stores, and what `doctor` checks in its tables.

A change is one transaction over catalog, texts, vectors, words and figures, so the table of staged changes stays empty;
the server rolls back the change of a killed process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from ...documents import text_hash
from ...documents.figures import PaperFigure, carry_descriptions
from ...errors import InputError
from ...plurals import counted
from ...table_columns import TEXT, TypedTable, dump_json, integer
from .. import paper_catalog as papers
from ..metadata_store import MetadataStore
from ..paper_catalog import Change, PaperCatalog, PaperRecord
from ..store_protocols import LibraryStores
from .bm25 import PostgresWords, write_postings
from .database import Database, DatabaseTables, LibraryTables, SeenRevision, SharedSql, increment_revision
from .postgres_vectors import EXACT_LIMIT, PostgresNearest, PostgresVectors

ROW: Final = "INSERT INTO papers VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
SECTION_ROW: Final = papers.SECTIONS.insert().replace("?", "%s")
_CHUNKS: Final = (
    "key, idx, text, section, parent, category, level, page, start, stop, tokens, page_breaks, text_hash, embedding"
)
_REVISION: Final = TypedTable("revision", (), {"number": integer()})
_CHUNK_TYPES: Final = "text int4 text text text int2 int4 int4 int4 int4 int4 int4[] text vector".split()
# pgvector's HNSW index takes vectors of up to 2,000 numbers, and halves of up to 4,000.
INDEXABLE: Final = 2000
INDEX: Final = "chunks_by_vector"
STAGED_IMAGE: Final = """
item->>'image_hash' FROM staged s, json_array_elements(s.change::json->'figures') item
WHERE item->>'image_hash' IS NOT NULL"""
_FIGURES: Final = TypedTable("figures", ("key", "idx"), {"key": TEXT, "idx": integer(), "record": papers.FIGURE})


def write_images(cursor: Any, changes: Sequence[Change]) -> None:
    """Write the images of papers that are about to be staged or inserted."""
    images = {name: content for change in changes for name, content in change.images.items()}
    if images:
        cursor.executemany("INSERT INTO images VALUES (%s, %s) ON CONFLICT DO NOTHING", list(images.items()))


def drop_images(connection: Any, names: Sequence[str]) -> None:
    """Delete the given images that no figure, current or staged, refers to any longer."""
    if not names:
        return
    connection.execute(
        "DELETE FROM images WHERE hash = ANY(%s) AND NOT EXISTS (SELECT 1 FROM figures WHERE image = images.hash)"
        f" AND hash NOT IN (SELECT {STAGED_IMAGE})",
        (list(names),),
    )


class PostgresCatalog(LibraryTables, PaperCatalog):
    """Papers, sections and chunks."""

    _RECORDS = f"SELECT {papers.RECORD_COLUMNS}, note, figures_version FROM papers"

    def close(self) -> None:
        self.database.close()

    def revision(self) -> tuple[int, int]:
        """The number of the library's revision, which changes whenever papers change."""
        return self._read(_REVISION, "SELECT number FROM revision")[0][0], 0

    def _write(self, statement: str, values: Sequence[object]) -> None:
        with self.database.connection() as connection:
            connection.execute(statement.replace("?", "%s"), values)

    @contextmanager
    def _change_papers(self) -> Iterator[SharedSql]:
        with self.database.transaction() as connection:
            increment_revision(connection)
            yield SharedSql(connection)

    def _naming_damage(self) -> AbstractContextManager[None]:
        return self.database.translate_errors()

    def _among(self, column: str, values: Iterable[object]) -> tuple[str, object]:
        return f"{column} = ANY(?)", list(values)

    def figures(self, key: str) -> tuple[PaperFigure, ...]:
        rows = self._read(_FIGURES, "SELECT key, idx, record FROM figures WHERE key = %s ORDER BY idx", (key,))
        return tuple(figure for _, _, figure in rows)

    def image(self, name: str) -> bytes | None:
        rows = self.rows("SELECT content FROM images WHERE hash = %s", (name,))
        return bytes(rows[0][0]) if rows else None

    def describe(self, key: str, figures: Sequence[PaperFigure]) -> None:
        with self.database.transaction() as connection:
            increment_revision(connection)
            query = "SELECT key, idx, record FROM figures WHERE key = %s AND idx = ANY(%s) ORDER BY idx FOR UPDATE"
            rows = _FIGURES.read(connection.execute(query, (key, [figure.number for figure in figures])))
            for item in carry_descriptions([figure for _, _, figure in rows], figures):
                connection.execute(
                    "UPDATE figures SET record = %s WHERE key = %s AND idx = %s",
                    (dump_json(asdict(item)), key, item.number),
                )

    def figures_by_paper(self) -> Iterable[tuple[str, list[PaperFigure]]]:
        rows = self._read(_FIGURES, "SELECT key, idx, record FROM figures ORDER BY key, idx")
        for key, of_paper in groupby(rows, key=itemgetter(0)):
            yield key, [figure for _, _, figure in of_paper]

    def stage(self, changes: Iterable[Change]) -> None:
        """Write changes to catalog, texts, vectors and words in one transaction."""
        with self.database.transaction() as connection:
            increment_revision(connection)
            added = self._replace(connection, list(changes))
            write_postings(connection.cursor(), {change.key: change.chunks for change in added})
            (total,) = connection.execute("SELECT sum(chunk_count) FROM papers").fetchone()
            for dimension in {len(change.summary_vector) for change in added}:
                if total > EXACT_LIMIT and dimension <= INDEXABLE:
                    expression = f"(embedding::vector({dimension})) vector_cosine_ops"
                    connection.execute(f"CREATE INDEX IF NOT EXISTS {INDEX} ON chunks USING hnsw ({expression})")

    def _replace(self, connection: Any, changes: Sequence[Change]) -> list[Change]:
        """Delete the papers of all changes, write the added ones without their words, and return their changes."""
        keys = [change.key for change in changes]
        query = "SELECT DISTINCT image FROM figures WHERE key = ANY(%s) AND image IS NOT NULL"
        images = [name for (name,) in connection.execute(query, (keys,)).fetchall()]
        connection.execute("DELETE FROM papers WHERE key = ANY(%s)", (keys,))
        added = [change for change in changes if change.record is not None]
        if added:
            cursor = connection.cursor()
            self.require_dimension(connection, added)
            cursor.executemany(
                ROW, [full_paper_row(change, change.record) for change in added if change.record is not None]
            )
            cursor.executemany(SECTION_ROW, [row for change in added for row in papers.section_rows(change)])
            copy_rows(cursor, (row for change in added for row in build_chunk_rows(change)))
            if passages := [(change.key, *place) for change in added for place in enumerate(change.note_vectors)]:
                cursor.executemany("INSERT INTO passages VALUES (%s, %s, %s)", passages)
            write_images(cursor, added)
            figures = [
                (change.key, figure.number, figure.kind, dump_json(asdict(figure)), figure.image_hash)
                for change in added
                for figure in change.figures
            ]
            if figures:
                cursor.executemany(
                    "INSERT INTO figures (key, idx, kind, record, image) VALUES (%s, %s, %s, %s, %s)", figures
                )
        drop_images(connection, images)
        return added

    def require_dimension(self, connection: Any, changes: Sequence[Change]) -> None:
        """Raise `InputError` for vectors of another dimension than the library's."""
        for dimension in {len(change.summary_vector) for change in changes if change.record is not None}:
            known = connection.execute("SELECT value FROM facts WHERE name = 'dimension'").fetchone()
            if known is None:
                connection.execute("INSERT INTO facts VALUES ('dimension', %s)", (str(dimension),))
            elif int(known[0]) != dimension:
                message = f"{self.database.url} holds vectors of {known[0]} numbers, but these have {dimension}."
                raise InputError(message)


def full_paper_row(change: Change, record: PaperRecord) -> tuple[object, ...]:
    note = dump_json(asdict(record.note)) if record.note is not None else None
    return (*papers.paper_row(change, record), note, change.summary_vector, record.figures_version)


def copy_rows(cursor: Any, rows: Iterable[tuple[object, ...]]) -> None:
    with cursor.copy(f"COPY chunks ({_CHUNKS}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(_CHUNK_TYPES)
        for row in rows:
            copy.write_row(row)


def build_chunk_rows(change: Change) -> list[tuple[object, ...]]:
    return [
        (*papers.chunk_row(chunk), list(chunk.page_breaks), text_hash(chunk.text), vector)
        for chunk, vector in zip(change.chunks, change.vectors, strict=True)
    ]


Rows = Callable[[str], list[tuple[Any, ...]]]
State = tuple[bool, str, str]
_VERSIONS: Final = """
SELECT current_setting('server_version'), current_setting('server_version_num')::int,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector'), (SELECT max(number) FROM schema_versions)
"""
_INDEXES: Final = (
    "answers_by_key checkpoints_by_id chunks_by_text postings_by_paper runs_by_fingerprint uses_by_answer uses_by_run"
).split()
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
    if number < 130_000:  # 13.0
        lacks = ": PostgreSQL 13 or newer is needed"
    elif tuple(int(part) for part in vectors.split(".")[:2]) < (0, 8):
        lacks = ": pgvector 0.8 or newer is needed; ALTER EXTENSION vector UPDATE"
    found = [(not lacks, "database", f"{shown}{lacks}")]

    valid: dict[str, bool] = dict(rows(_VALID))
    missing = [name for name in _INDEXES if name not in valid]
    missing += [f"the key of {name}" for (name,) in rows(_WITHOUT_KEY)]
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
        """The newest revision that a search has read in its own statement."""
        return self._seen.number, 0

    def search(self, records: papers.CurrentRecords) -> PostgresNearest:
        return PostgresNearest(records, self.vectors)

    def state(self) -> list[tuple[bool, str, str]]:
        """Report the versions of server, pgvector and tables, the indexes, and whether the tables agree."""
        return database_state(self.catalog.rows)

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Do nothing: a staged change is committed as a whole."""
