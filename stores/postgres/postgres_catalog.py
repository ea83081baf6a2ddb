"""The catalog in PostgreSQL; a change to papers is one transaction over catalog, texts, vectors and words.

So nothing is ever staged: a change of a killed process is rolled back by the server, and readers see the papers before
or after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from ...documents import Section, chunk_id, text_hash
from ...errors import InputError
from ...table_columns import TypedTable, dump_json, integer
from ..paper_change import (
    CHUNKS,
    FACTS,
    PAPERS,
    SECTIONS,
    Change,
    ChunkRow,
    PaperRecord,
    build_record,
    chunk_row,
    section_rows,
)
from .bm25 import write_postings
from .database import Database, PooledTables, revise
from .postgres_figures import PostgresFigures, drop_images, images_of, write_figures
from .postgres_vectors import EXACT_LIMIT

ROW: Final = "INSERT INTO papers VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
_SECTIONS: Final = "key, idx, title, parent, level, category, start, stop, searchable"
SECTION_ROW: Final = f"INSERT INTO sections ({_SECTIONS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
_CHUNKS: Final = (
    "key, idx, text, section, parent, category, level, page, start, stop, tokens, page_breaks, text_hash, embedding"
)
_REVISION: Final = TypedTable("revision", (), {"number": integer()})
_CHUNK_TYPES: Final = "text int4 text text text int2 int4 int4 int4 int4 int4 int4[] text vector".split()
# pgvector's HNSW index takes vectors of up to 2,000 numbers, and halves of up to 4,000.
INDEXABLE: Final = 2000
INDEX: Final = "chunks_by_vector"


class PostgresCatalog(PooledTables):
    """Papers, sections and chunks; thread-safe."""

    def __init__(self, database: Database, pool: Any) -> None:
        super().__init__(database, pool)
        self.figures = PostgresFigures(database, pool)

    def close(self) -> None:
        self._pool.close()

    def revision(self) -> tuple[int, int]:
        """The number of the library's revision: it changes whenever papers change."""
        return self._read(_REVISION, "SELECT number FROM revision")[0][0], 0

    def meta(self, name: str) -> str | None:
        rows = self._read(FACTS, "SELECT name, value FROM facts WHERE name = %s", (name,))
        return rows[0][1] if rows else None

    def set_meta(self, name: str, value: str) -> None:
        with self._connection() as connection:
            connection.execute(
                "INSERT INTO facts VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, value),
            )

    def records(self) -> dict[str, PaperRecord]:
        query = (
            "SELECT key, record, metadata_hash, chunking, summary, summary_kind, chunk_count, note, figures_version"
            " FROM papers ORDER BY key"
        )
        with self._database.named_errors():
            found = [build_record(row) for row in self._read(PAPERS, query)]
        return {record.paper.key: record for record in found}

    def unfinished(self) -> list[str]:
        """None: a change is committed as a whole."""
        return []

    def staged(self, key: str) -> Change:
        """Raise KeyError: a change is committed as a whole."""
        raise KeyError(key)

    def sections(self, key: str) -> list[Section]:
        rows = self._read(SECTIONS, f"SELECT {_SECTIONS} FROM sections WHERE key = %s ORDER BY idx", (key,))
        return [Section(*row) for _, *row in rows]

    def chunk_rows(
        self, *, keys: Sequence[str] | None = None, categories: Sequence[int] | None = None
    ) -> list[ChunkRow]:
        chosen = [int(category) for category in categories] if categories is not None else None
        rows = self._read(
            CHUNKS,
            "SELECT key, idx, category, tokens, text_hash FROM chunks"
            " WHERE (%(keys)s::text[] IS NULL OR key = ANY(%(keys)s))"
            " AND (%(categories)s::int[] IS NULL OR category = ANY(%(categories)s)) ORDER BY key, idx",
            {"keys": None if keys is None else list(keys), "categories": chosen},
        )
        return [ChunkRow(*row) for row in rows]

    def ids_by_text(self, hashes: Iterable[str]) -> dict[str, str]:
        query = "SELECT text_hash, key, idx FROM chunks WHERE text_hash = ANY(%s)"
        rows = self._read(CHUNKS, query, (sorted(set(hashes)),))
        return {text: chunk_id(key, index) for text, key, index in rows}

    def update_metadata(self, records: Iterable[PaperRecord]) -> None:
        rows = [(dump_json(asdict(record.paper)), record.metadata_hash, record.paper.key) for record in records]
        with self._connection() as connection, connection.transaction():
            revise(connection)
            connection.cursor().executemany("UPDATE papers SET record = %s, metadata_hash = %s WHERE key = %s", rows)

    def mark_stale(self, keys: Iterable[str]) -> None:
        with self._connection() as connection, connection.transaction():
            revise(connection)
            connection.execute("UPDATE papers SET chunking = 'stale' WHERE key = ANY(%s)", (list(keys),))

    def miscounted(self) -> set[str]:
        rows = self.rows(
            "SELECT key FROM papers WHERE chunk_count <> (SELECT count(*) FROM chunks WHERE chunks.key = papers.key)"
            " OR chunk_count <> (SELECT coalesce(max(idx) + 1, 0) FROM chunks WHERE chunks.key = papers.key)"
            " OR NOT EXISTS (SELECT 1 FROM sections WHERE sections.key = papers.key)"
        )
        return {row[0] for row in rows}

    def strays(self) -> set[str]:
        """None: foreign keys delete the parts of a paper with it."""
        return set()

    def drop_strays(self) -> None:
        """Do nothing: there are none."""

    def stage(self, changes: Iterable[Change]) -> None:
        """Write changes to catalog, texts, vectors and words in one transaction."""
        self._write(list(changes))

    def _write(self, changes: Sequence[Change]) -> None:
        with self._connection() as connection, connection.transaction():
            revise(connection)
            changes = self._begin(connection, changes)
            keys = [change.key for change in changes]
            images = images_of(connection, keys)
            connection.execute("DELETE FROM papers WHERE key = ANY(%s)", (keys,))
            if put := [(change, change.record) for change in changes if change.record is not None]:
                self._put(connection, put)
            drop_images(connection, images)

    def _begin(self, connection: Any, changes: Sequence[Change]) -> Sequence[Change]:
        """The changes to write, within an open transaction."""
        return changes

    def _put(self, connection: Any, put: Sequence[tuple[Change, PaperRecord]]) -> None:
        cursor = connection.cursor()
        cursor.executemany(ROW, [paper_row(change, record) for change, record in put])
        cursor.executemany(SECTION_ROW, [row for change, _ in put for row in section_rows(change)])
        copy_rows(cursor, (row for change, _ in put for row in chunk_rows_of(change)))
        if passages := [(change.key, place, row) for change, _ in put for place, row in enumerate(change.note_vectors)]:
            cursor.executemany("INSERT INTO passages VALUES (%s, %s, %s)", passages)
        written = [change for change, _ in put]
        self._write_words(cursor, written)
        write_figures(cursor, written)
        for dimension in {len(change.summary_vector) for change in written}:
            require_dimension(connection, dimension, self._database)
            self._index(connection, dimension)

    def _write_words(self, cursor: Any, changes: Sequence[Change]) -> None:
        write_postings(cursor, {change.key: change.chunks for change in changes})

    def _index(self, connection: Any, dimension: int) -> None:
        """Build the vector index once there are too many vectors for exact search."""
        (total,) = connection.execute("SELECT sum(chunk_count) FROM papers").fetchone()
        if total > EXACT_LIMIT and dimension <= INDEXABLE:
            expression = f"(embedding::vector({dimension})) vector_cosine_ops"
            connection.execute(f"CREATE INDEX IF NOT EXISTS {INDEX} ON chunks USING hnsw ({expression})")


def require_dimension(connection: Any, dimension: int, database: Database) -> None:
    """Raise `InputError` for vectors of another dimension than the library's."""
    known = connection.execute("SELECT value FROM facts WHERE name = 'dimension'").fetchone()
    if known is None:
        connection.execute("INSERT INTO facts VALUES ('dimension', %s)", (str(dimension),))
    elif int(known[0]) != dimension:
        raise InputError(f"{database.url}: holds vectors of {known[0]} numbers, but these have {dimension}.")


def paper_row(change: Change, record: PaperRecord) -> tuple[object, ...]:
    """The row of a paper."""
    paper = record.paper
    note = dump_json(asdict(record.note)) if record.note is not None else None
    head = (change.key, dump_json(asdict(paper)), paper.content_hash, record.metadata_hash, record.chunking)
    rest = (record.summary_kind, len(change.chunks), note, change.summary_vector, record.figures_version)
    return (*head, record.summary, *rest)


def copy_rows(cursor: Any, rows: Iterable[tuple[object, ...]]) -> None:
    """Write the rows of chunks."""
    with cursor.copy(f"COPY chunks ({_CHUNKS}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(_CHUNK_TYPES)
        for row in rows:
            copy.write_row(row)


def chunk_rows_of(change: Change) -> list[tuple[object, ...]]:
    """The rows of a paper's chunks."""
    return [
        (*chunk_row(chunk), list(chunk.page_breaks), text_hash(chunk.text), vector)
        for chunk, vector in zip(change.chunks, change.vectors, strict=True)
    ]
