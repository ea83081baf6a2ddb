"""Texts and vectors of papers in the catalog's file: read with the records that they belong to, without Chroma.

A paper has one row for the text of each chunk, and one row with all its vectors, which packs them without gaps.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from ...documents import Chunk, chunk_id, split_chunk_id, text_hash
from ...models.embeddings.protocol import Vector, Vectors, normalise
from ...table_columns import BLOB, TEXT, Column, TypedTable, dump_json, integer, optional
from ..paper_change import CHUNKS, SECTIONS, Change, chunk_row
from ..search_records import StoredChunk, VectorKind, VectorStoreError

TABLES: Final = ("chunk_texts", "vectors")
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS chunk_texts (
    key TEXT NOT NULL, idx INTEGER NOT NULL, text TEXT NOT NULL, section TEXT NOT NULL, parent TEXT NOT NULL,
    category INTEGER NOT NULL, level INTEGER NOT NULL, page INTEGER, start INTEGER NOT NULL, stop INTEGER NOT NULL,
    tokens INTEGER NOT NULL, page_breaks TEXT NOT NULL, PRIMARY KEY (key, idx)
);
CREATE TABLE IF NOT EXISTS vectors (
    key TEXT PRIMARY KEY, size INTEGER NOT NULL, content BLOB NOT NULL, summaries BLOB NOT NULL, notes BLOB NOT NULL
);
"""
_BREAKS: Final = Column("whole numbers", lambda value: tuple(map(int, TEXT.decode(value).split())))
_TEXTS: Final = TypedTable(
    "chunk_texts",
    ("key", "idx"),
    {**SECTIONS.columns, **CHUNKS.columns}
    | {"text": TEXT, "section": TEXT, "page": optional(integer()), "page_breaks": _BREAKS},
)
_VECTORS: Final = TypedTable(
    "vectors", ("key",), {"key": TEXT, "size": integer(1), "content": BLOB, "summaries": BLOB, "notes": BLOB}
)

Read = Callable[..., list[tuple[Any, ...]]]
Transaction = Callable[[], AbstractContextManager[sqlite3.Connection]]
Places = Mapping[str, Mapping[int, str]]  # the ids asked for, by key and place


class CatalogContents:
    """Texts and vectors in the catalog's file; `read` and `transaction` are the catalog's."""

    def __init__(self, read: Read, transaction: Transaction) -> None:
        self._read = read
        self._transaction = transaction

    def chunks(self, ids: Iterable[str]) -> dict[str, StoredChunk]:
        """The existing chunks, by id, without vectors."""
        places = [[key, index] for key, of_key in _places("content", ids).items() for index in of_key]
        rows = self._read(
            _TEXTS,
            "SELECT t.* FROM json_each(?) asked JOIN chunk_texts t"
            " ON t.key = json_extract(asked.value, '$[0]') AND t.idx = json_extract(asked.value, '$[1]')",
            (dump_json(places),),
        )
        chunks = (Chunk(chunk_id(row[0], row[1]), *row) for row in rows)  # in the order of the columns
        return {chunk.id: StoredChunk(chunk, text_hash(chunk.text)) for chunk in chunks}

    def vectors(self, kind: VectorKind, ids: Iterable[str]) -> dict[str, Vector]:
        """The existing vectors of a kind, by id."""
        import numpy as np

        places = _places(kind, ids)
        found: dict[str, Vector] = {}
        query = f"SELECT key, size, {kind} FROM vectors WHERE key IN (SELECT value FROM json_each(?))"
        for key, size, blob in self._read(_VECTORS, query, (dump_json(list(places)),)):
            if len(blob) % (4 * size):
                raise VectorStoreError(
                    f"catalog.sqlite: table vectors, column {kind}, row key={key!r}:"
                    f" expected vectors of {size} numbers, not {len(blob)} bytes."
                )
            rows = np.frombuffer(blob, "<f4").reshape(-1, size)
            found |= {name: rows[place] for place, name in places[key].items() if 0 <= place < len(rows)}
        return found

    def forget_texts(self, ids: Sequence[str]) -> None:
        """Delete the texts of these chunks."""
        with self._transaction() as db:
            db.executemany("DELETE FROM chunk_texts WHERE key = ? AND idx = ?", [_place("content", n) for n in ids])


def insert_contents(db: sqlite3.Connection, change: Change) -> None:
    """Insert the texts and vectors of a paper."""
    db.executemany(
        f"INSERT INTO chunk_texts VALUES ({', '.join('?' * 12)})",
        [(*chunk_row(chunk), " ".join(map(str, chunk.page_breaks))) for chunk in change.chunks],
    )
    blobs = [_blob(rows) for rows in (change.vectors, change.summary_vector, change.note_vectors)]
    db.execute("INSERT INTO vectors VALUES (?, ?, ?, ?, ?)", (change.key, change.summary_vector.shape[-1], *blobs))


def _blob(rows: Vectors) -> bytes:
    if not rows.size:
        return b""
    import numpy as np

    unit = np.allclose(np.linalg.norm(rows, axis=-1), 1, atol=1e-6)  # if so, stored bit-identical
    return (rows if unit else normalise(rows)).astype("<f4").tobytes()


def _places(kind: VectorKind, ids: Iterable[str]) -> Places:
    found: dict[str, dict[int, str]] = {}
    for name in ids:
        key, place = _place(kind, name)
        found.setdefault(key, {})[place] = name
    return found


def _place(kind: VectorKind, name: str) -> tuple[str, int]:
    try:
        return (name, 0) if kind == "summaries" else split_chunk_id(name)
    except ValueError:
        return name, -1
