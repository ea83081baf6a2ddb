"""The catalog: which papers exist, their structure, and the indexing state of each.

A change to a paper is first written here in full, including its vectors (`stage`), then to the other stores, then
marked done (`commit`). A process that is killed in between leaves a staged change, which the next process applies
without embedding anything; until then the paper is "indexing" and invisible to readers.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from ...documents import Section, chunk_id, text_hash
from ...errors import InputError, OtherFormatError
from ...sqlite import TextConnection, naming_damage, require_plain_schema, write_ahead
from ...table_columns import TEXT, TypedTable, dump_json, integer
from ..paper_change import (
    CHUNKS,
    FACTS,
    NOTE,
    PAPERS,
    SECTIONS,
    STAGED,
    Change,
    ChunkRow,
    PaperRecord,
    build_record,
    deserialize_change,
    section_rows,
    serialize_change,
)
from .catalog_contents import SCHEMA as CONTENTS_SCHEMA, TABLES as CONTENTS, CatalogContents, insert_contents
from .catalog_figures import SCHEMA as FIGURES_SCHEMA, CatalogFigures, FigureFiles, delete_figures, insert_figures

SCHEMA_VERSION: Final = 3  # lower ones were never released

SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS papers (
    key TEXT PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('indexing', 'ready')), record TEXT NOT NULL,
    content_hash TEXT NOT NULL, metadata_hash TEXT NOT NULL, chunking TEXT NOT NULL,
    summary TEXT NOT NULL, summary_kind TEXT NOT NULL, chunk_count INTEGER NOT NULL, year INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sections (
    key TEXT NOT NULL, idx INTEGER NOT NULL, title TEXT NOT NULL, parent TEXT NOT NULL,
    level INTEGER NOT NULL, category INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
    searchable INTEGER NOT NULL,
    PRIMARY KEY (key, idx)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunks (
    key TEXT NOT NULL, idx INTEGER NOT NULL, category INTEGER NOT NULL, start INTEGER NOT NULL,
    stop INTEGER NOT NULL, tokens INTEGER NOT NULL, text_hash TEXT NOT NULL, PRIMARY KEY (key, idx)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chunks_by_text ON chunks (text_hash);
CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, note TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS staged (
    key TEXT PRIMARY KEY, change TEXT NOT NULL, vectors BLOB NOT NULL
) WITHOUT ROWID;
{CONTENTS_SCHEMA}{FIGURES_SCHEMA}"""


def insert_paper(db: sqlite3.Connection, change: Change, record: PaperRecord) -> None:
    """Insert a paper with all its parts as ready."""
    key, paper = change.key, record.paper
    if record.note is not None:
        db.execute("INSERT INTO notes VALUES (?, ?)", (key, dump_json(asdict(record.note))))
    insert_figures(db, change, record)
    insert_contents(db, change)
    hashes = (paper.content_hash, record.metadata_hash, record.chunking)
    row = (key, dump_json(asdict(paper)), *hashes, record.summary, record.summary_kind, len(change.chunks), paper.year)
    db.execute("INSERT INTO papers VALUES (?, 'ready', ?, ?, ?, ?, ?, ?, ?, ?)", row)
    db.executemany("INSERT INTO sections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", section_rows(change))
    db.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(key, c.index, int(c.category), c.start, c.end, c.tokens, text_hash(c.text)) for c in change.chunks],
    )


_REMEDY = "Move it away and ingest the papers again."
_PARTS = ("chunks", "sections", "notes", "figures", *CONTENTS)  # tables whose rows belong to a row of `papers`
_META = replace(FACTS, name="meta")
_NOTES = TypedTable("notes", ("key",), {"key": TEXT, "note": NOTE})
_COUNT = TypedTable("chunks", (), {"number": integer()})
_STRAY = "key NOT IN (SELECT key FROM papers)"


class Catalog:
    """The catalog's SQLite file: one connection, guarded by a lock, so that threads can share it."""

    def __init__(self, path: Path, images: FigureFiles) -> None:
        """Open or create the file; raises `InputError` if it is not a catalog of this format."""
        self.figures = CatalogFigures(self._read, self._transaction, images)
        self.contents = CatalogContents(self._read, self._transaction)
        self._lock = threading.RLock()
        self._path = path
        self._db = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=30, factory=TextConnection
        )
        try:
            self._db.execute("PRAGMA page_size=8192")  # for new files: texts of 2 kB leave half of a small page empty
            write_ahead(self._db)
            self._db.execute("PRAGMA synchronous=FULL")
            require_plain_schema(self._db, path, _REMEDY)
            self._db.executescript(SCHEMA)
            self._require_known_version()
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise InputError(f"{path}: is not a library catalog ({error}).", help=_REMEDY) from error
        except InputError:
            self._db.close()
            raise

    def _require_known_version(self) -> None:
        version = self.meta("schema")
        if version is None:
            self.set_meta("schema", str(SCHEMA_VERSION))
        elif not version.isdecimal():
            raise InputError(
                f"{self._path}: table meta, column value, row name='schema': expected a number, not {version[:60]!r}.",
                help=_REMEDY,
            )
        elif int(version) != SCHEMA_VERSION:
            raise OtherFormatError(self._path, int(version), SCHEMA_VERSION)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, naming_damage(self._path, _REMEDY):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _read(self, table: TypedTable, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock, naming_damage(self._path, _REMEDY):
            return table.read(self._db.execute(query, values))

    def revision(self) -> tuple[int, int]:
        with self._lock:
            (others,) = self._db.execute("PRAGMA data_version").fetchone()
            return others, self._db.total_changes

    def meta(self, name: str) -> str | None:
        rows = self._read(_META, "SELECT name, value FROM meta WHERE name = ?", (name,))
        return rows[0][1] if rows else None

    def set_meta(self, name: str, value: str) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, value),
            )

    def records(self) -> dict[str, PaperRecord]:
        query = (
            "SELECT state, key, record, metadata_hash, chunking, summary, summary_kind, chunk_count, note,"
            " CASE WHEN figures.key IS NULL THEN '' ELSE version END AS version"
            " FROM papers LEFT JOIN notes USING (key) LEFT JOIN figures USING (key)"
            " WHERE state IS NOT 'indexing' ORDER BY key"
        )
        with naming_damage(self._path, _REMEDY):
            found = [build_record(row[1:]) for row in self._read(PAPERS, query)]
        return {record.paper.key: record for record in found}

    def unfinished(self) -> list[str]:
        return [row[0] for row in self._read(STAGED, "SELECT key FROM staged ORDER BY key")]

    def sections(self, key: str) -> list[Section]:
        rows = self._read(
            SECTIONS,
            "SELECT key, idx, title, parent, level, category, start, stop, searchable FROM sections"
            " WHERE key = ? ORDER BY idx",
            (key,),
        )
        return [Section(*row) for _, *row in rows]

    def chunk_rows(
        self, *, keys: Sequence[str] | None = None, categories: Sequence[int] | None = None
    ) -> list[ChunkRow]:
        query = (
            "SELECT c.key, c.idx, c.category, c.tokens, c.text_hash"
            " FROM papers p JOIN chunks c ON c.key = p.key WHERE p.state = 'ready'"
        )
        values: list[object] = []
        if keys is not None:
            query += " AND p.key IN (SELECT value FROM json_each(?))"
            values.append(dump_json(list(keys)))
        if categories is not None:
            query += " AND c.category IN (SELECT value FROM json_each(?))"
            values.append(dump_json([int(category) for category in categories]))
        return [ChunkRow(*row) for row in self._read(CHUNKS, query + " ORDER BY c.key, c.idx", values)]

    def categories(self) -> dict[str, bytes]:
        """The category of each chunk of the ready papers, by key: one byte per chunk, in order."""
        rows = self._read(
            CHUNKS,
            "SELECT c.key, c.idx, c.category FROM papers p JOIN chunks c ON c.key = p.key WHERE p.state = 'ready'"
            " ORDER BY c.key, c.idx",
        )
        found: dict[str, bytearray] = {}
        for key, _, category in rows:
            found.setdefault(key, bytearray()).append(category)
        return {key: bytes(kinds) for key, kinds in found.items()}

    def ids_by_text(self, hashes: Iterable[str]) -> dict[str, str]:
        rows = self._read(
            CHUNKS,
            "SELECT c.text_hash, c.key, c.idx FROM chunks c JOIN papers p ON p.key = c.key"
            " WHERE p.state = 'ready' AND c.text_hash IN (SELECT value FROM json_each(?))",
            (dump_json(sorted(set(hashes))),),
        )
        return {text: chunk_id(key, index) for text, key, index in rows}

    def update_metadata(self, records: Iterable[PaperRecord]) -> None:
        with self._transaction() as db:
            db.executemany(
                "UPDATE papers SET record = ?, metadata_hash = ?, year = ? WHERE key = ?",
                [
                    (dump_json(asdict(record.paper)), record.metadata_hash, record.paper.year, record.paper.key)
                    for record in records
                ],
            )

    def mark_stale(self, keys: Iterable[str]) -> None:
        with self._transaction() as db:
            db.executemany("UPDATE papers SET chunking = 'stale' WHERE key = ?", [(key,) for key in keys])

    def stage(self, changes: Iterable[Change]) -> None:
        rows = [(change, serialize_change(change)) for change in changes]
        self.figures.put(change for change, _ in rows)
        with self._transaction() as db:
            for change, row in rows:
                db.execute("INSERT OR REPLACE INTO staged VALUES (?, ?, ?)", row)
                if change.record is not None:
                    db.execute(
                        "INSERT INTO papers VALUES (?, 'indexing', ?, '', '', '', '', 'extractive', 0, NULL)"
                        " ON CONFLICT (key) DO UPDATE SET state = 'indexing'",
                        (change.key, dump_json(asdict(change.record.paper))),
                    )
                else:
                    db.execute("UPDATE papers SET state = 'indexing' WHERE key = ?", (change.key,))

    def staged(self, key: str) -> Change:
        rows = self._read(STAGED, "SELECT key, change, vectors FROM staged WHERE key = ?", (key,))
        if not rows:
            raise KeyError(key)
        with naming_damage(self._path, _REMEDY):
            return deserialize_change(*rows[0])

    def indexed_count(self, key: str) -> int:
        """How many chunks of a paper the catalog lists, ready or not."""
        return int(self._read(_COUNT, "SELECT count(*) AS number FROM chunks WHERE key = ?", (key,))[0][0])

    def miscounted(self) -> set[str]:
        rows = self._read(
            PAPERS,
            "SELECT key FROM papers WHERE state = 'ready' AND NOT ("
            " chunk_count = (SELECT count(*) FROM chunks WHERE chunks.key = papers.key)"
            " AND chunk_count = (SELECT coalesce(max(idx) + 1, 0) FROM chunks WHERE chunks.key = papers.key)"
            " AND EXISTS (SELECT 1 FROM sections WHERE sections.key = papers.key))",
        )
        return {row[0] for row in rows}

    def strays(self) -> set[str]:
        keys = {name: TypedTable(name, ("key",), {"key": TEXT}) for name in _PARTS}
        found = (self._read(keys[name], f"SELECT key FROM {name} WHERE {_STRAY}") for name in _PARTS)
        return {key for rows in found for (key,) in rows}

    def drop_strays(self) -> None:
        with self._transaction() as db:
            for table in _PARTS:
                db.execute(f"DELETE FROM {table} WHERE {_STRAY}")
        self.figures.drop(self.figures.stray_images())

    def noted_count(self, key: str) -> int:
        """How many passages the note on a paper has, ready or not."""
        rows = self._read(_NOTES, "SELECT key, note FROM notes WHERE key = ?", (key,))
        return len(rows[0][1].spans) if rows else 0

    def commit(self, changes: Iterable[Change]) -> None:
        """Mark staged changes as done in one transaction: each paper is ready, or gone."""
        before: set[str] = set()
        with self._transaction() as db:
            for change in changes:
                before |= delete_figures(db, change.key)
                for table in ("papers", "sections", "chunks", "notes", "staged", *CONTENTS):
                    db.execute(f"DELETE FROM {table} WHERE key = ?", (change.key,))
                if change.record is not None:
                    insert_paper(db, change, change.record)
        self.figures.drop(before)
