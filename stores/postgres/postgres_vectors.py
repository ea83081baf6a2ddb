"""Texts and vectors of chunks in PostgreSQL (pgvector), and the search for the nearest.

A scope of up to `EXACT_LIMIT` chunks is searched exactly. A larger scope is searched through the HNSW index, which may
miss a few of the nearest; if it yields fewer than requested, the scope is searched exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...documents import Category, Chunk, chunk_id
from ...errors import InputError
from ...models.embeddings.protocol import Vector
from ...table_columns import WrongValueError
from ..paper_catalog import CurrentRecords, PaperRecord
from ..store_protocols import ChunkVectors, ScopedSearch, Scored, TextScope, VectorKind, sort_scores, split_ids
from .database import Database, LibraryTables, SeenRevision

_CHUNK: Final = (
    "c.key, c.idx, c.text, c.section, c.parent, c.category, c.level, c.page, c.start, c.stop, c.tokens, c.page_breaks"
)
# Ids sort as text, including the colon after the key.
_BY_ID: Final = "(key || ':') COLLATE \"C\", idx"
_LIMITS: Final = (
    "(%(keys)s::text[] IS NULL OR key = ANY(%(keys)s))"
    " AND (%(categories)s::int[] IS NULL OR category = ANY(%(categories)s))"
)


def _by_ids(columns: str, table: str) -> str:
    return f"SELECT {columns} FROM unnest(%s::text[], %s::int[]) AS wanted (key, idx) JOIN {table} c USING (key, idx)"


_REVISION: Final = "(SELECT number FROM revision)"
CHUNKS: Final = _by_ids(_CHUNK, "chunks")
EXACT: Final = (
    f"SELECT {_REVISION}, key, idx, 1 - (embedding <=> %(vector)s) FROM chunks"
    f" WHERE {_LIMITS} ORDER BY embedding <=> %(vector)s, {_BY_ID} LIMIT %(k)s"
)
EXACT_LIMIT: Final = 20_000  # chunks
_TABLES: Final = {"content": "chunks", "notes": "passages"}
_WIDENING: Final = 4  # results requested from the index per result wanted
_MOST_SCANNED: Final = 200_000


class PostgresVectors(LibraryTables, ChunkVectors):
    """Chunks, summaries and passages of notes; thread-safe."""

    _binary = True

    def __init__(self, database: Database, seen: SeenRevision) -> None:
        super().__init__(database)
        self.seen = seen

    def get_chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        rows = self.rows(CHUNKS, id_columns(ids))
        with self.database.translate_errors():
            return {chunk.id: chunk for chunk in map(_chunk, rows)}

    def get_vectors(self, ids: Sequence[str], kind: VectorKind = "content") -> dict[str, Vector]:
        if kind != "summaries":
            rows = self.rows(_by_ids("c.key, c.idx, c.embedding", _TABLES[kind]), id_columns(ids))
            return {chunk_id(key, index): _vector(row) for key, index, row in rows}
        query = "SELECT key, summary_vector FROM papers WHERE key = ANY(%s) AND summary_vector IS NOT NULL"
        return {key: _vector(row) for key, row in self.rows(query, (list(ids),))}

    def stored_ids(self, kind: VectorKind = "content") -> set[str]:
        if kind == "summaries":
            return {row[0] for row in self.rows("SELECT key FROM papers WHERE summary_vector IS NOT NULL")}
        return {chunk_id(*row) for row in self.rows(f"SELECT key, idx FROM {_TABLES[kind]}")}

    def delete(self, ids: Sequence[str], kind: VectorKind = "content") -> None:
        with self.database.connection() as connection:
            if kind == "summaries":
                connection.execute("UPDATE papers SET summary_vector = NULL WHERE key = ANY(%s)", (list(ids),))
                return
            connection.execute(
                f"DELETE FROM {_TABLES[kind]} c USING unnest(%s::text[], %s::int[]) AS gone (key, idx)"
                " WHERE c.key = gone.key AND c.idx = gone.idx",
                id_columns(ids),
            )

    def read_through(self) -> None:
        self.rows("SELECT sum(vector_dims(embedding)) FROM chunks")

    def set_aside(self) -> Path:
        """Raise `InputError`: a damaged database is restored from a backup."""
        raise InputError(f"{self.database.url}: vectors cannot be read.", help="Restore a backup of the database.")


class PostgresNearest(ScopedSearch):
    """Vector search over a library."""

    _one_state = True

    def __init__(self, records: CurrentRecords, vectors: PostgresVectors) -> None:
        super().__init__(records, vectors.get_vectors)
        self._vectors = vectors

    def _near_chunks(self, vector: Vector, k: int, scope: TextScope, records: Mapping[str, PaperRecord]) -> Scored:
        wanted = None if scope.keys is None else sorted(scope.keys)
        kinds = None if scope.categories is None else [int(category) for category in scope.categories]
        values = {"vector": vector, "k": k, "keys": wanted, "categories": kinds}
        size = sum(record.chunk_count for key, record in records.items() if scope.keys is None or key in scope.keys)
        if size > EXACT_LIMIT:
            found = self._search_index(vector, k, values)
            if len(found) == k:
                return found
        return self._score_rows(self._vectors.rows(EXACT, values))

    def _search_index(self, vector: Vector, k: int, values: dict[str, Any]) -> Scored:
        cast = f"embedding::vector({len(vector)}) <=> %(vector)s::vector({len(vector)})"
        search = f"SELECT {_REVISION}, key, idx, 1 - ({cast}) FROM chunks WHERE {_LIMITS} ORDER BY {cast} LIMIT %(k)s"
        with self._vectors.database.transaction() as connection:
            connection.execute(f"SET LOCAL hnsw.ef_search = {min(1000, max(100, _WIDENING * k))}")
            connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
            connection.execute(f"SET LOCAL hnsw.max_scan_tuples = {_MOST_SCANNED}")
            found = connection.execute(search, values | {"k": _WIDENING * k}, binary=True).fetchall()
        return sort_scores(self._score_rows(found))[:k]

    def _score_rows(self, rows: Sequence[tuple[Any, ...]]) -> Scored:
        """Ids and cosines of the rows of a search; notes the revision that it saw."""
        self._vectors.seen.update((rows or self._vectors.rows(f"SELECT {_REVISION}"))[0][0])
        return [(chunk_id(key, index), score) for _, key, index, score in rows]

    def _near_summaries(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        query = (
            "SELECT key, 1 - (summary_vector <=> %(vector)s) FROM papers WHERE summary_vector IS NOT NULL"
            " ORDER BY summary_vector <=> %(vector)s, key LIMIT %(k)s"
        )
        rows = self._vectors.rows(query, {"vector": vector, "k": k})
        return [(key, float(score)) for key, score in rows if key in records]

    def _near_passages(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        rows = self._vectors.rows(
            f"SELECT key, idx, 1 - (embedding <=> %(vector)s) FROM passages"
            f" ORDER BY embedding <=> %(vector)s, {_BY_ID} LIMIT %(k)s",
            {"vector": vector, "k": k},
        )
        return [(chunk_id(key, index), float(score)) for key, index, score in rows if key in records]


def id_columns(ids: Iterable[str]) -> tuple[list[str], list[int]]:
    """Keys and indices of the valid chunk ids, without duplicates, as parameters of a statement."""
    pairs = split_ids(ids)
    return [key for key, _ in pairs], [index for _, index in pairs]


def _vector(value: Any) -> Vector:
    return np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value, np.float32)


_CATEGORIES: Final = {int(category): category for category in Category}  # ten times as fast as `Category(number)`


def _chunk(row: tuple[Any, ...]) -> Chunk:
    key, index, text, section, parent, category, level, page, start, stop, tokens, breaks = row
    wrong = "category" if category not in _CATEGORIES else "page_breaks" if breaks is None else ""
    if wrong:
        raise WrongValueError(f"table chunks, column {wrong}, row key={key!r} idx={index!r}: not a value of a chunk.")
    place = (_CATEGORIES[category], level, page, start, stop, tokens, tuple(breaks))
    return Chunk(chunk_id(key, index), key, index, text, section, parent, *place)
