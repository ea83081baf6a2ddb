"""The catalog of a home in a folder: which papers exist, their structure, texts and vectors, and their indexing state.

A change to a paper is first written here in full, including its vectors (`stage`), then to the other stores, then
marked done (`commit`). A process that is killed in between leaves a staged change, which the next process applies
without embedding anything; until then the paper is "indexing" and invisible to readers.

Images of figures are files, stored before the change that refers to them, and deleted after the last such change: a
kill in between leaves an image without a paper, never the reverse. A private copy never deletes images of its original.

A paper has one row for the text of each chunk, and one row with all its vectors, packed without gaps.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from ...documents import Chunk, chunk_id, split_chunk_id, text_hash
from ...documents.figures import PaperFigure, carry_descriptions, image_hash, is_image_hash
from ...documents.safe_files import replace_file
from ...errors import InputError, OtherFormatError
from ...models.embeddings.protocol import Vector, normalise
from ...sqlite import TextConnection, naming_damage, require_plain_schema, write_ahead
from ...table_columns import BLOB, SQLITE, TEXT, Column, TypedTable, dump_json, integer, json_column, optional
from .. import paper_catalog as papers
from ..folder_home import FolderHome
from ..store_protocols import VectorKind, VectorStoreError, split_ids

FIGURES: Final = TypedTable(
    "figures",
    ("key",),
    {"key": TEXT, "version": TEXT, "figures": json_column("a list of figures", tuple[PaperFigure, ...])},
)
_READY: Final = "FROM figures f JOIN papers p ON p.key = f.key WHERE p.state = 'ready'"


def _read_figures(db: sqlite3.Connection, key: str) -> list[tuple[PaperFigure, ...]]:
    rows = FIGURES.read(db.execute("SELECT key, figures FROM figures WHERE key = ?", (key,)))
    return [figures for _, figures in rows]


SCHEMA_VERSION: Final = 3  # lower ones were never released
_FACTS: Final = replace(papers.FACTS, name="meta")
_NOTES: Final = TypedTable("notes", ("key",), {"key": TEXT, "note": papers.NOTE})
_CHUNKS: Final = replace(
    papers.CHUNKS,
    columns={**papers.CHUNKS.columns, "start": integer(), "stop": integer()},
    indexes={"chunks_by_text": "(text_hash)"},
)
_BREAKS: Final = Column("whole numbers", lambda value: tuple(map(int, TEXT.decode(value).split())))
_TEXTS: Final = TypedTable(
    "chunk_texts",
    ("key", "idx"),
    {"key": TEXT, "idx": integer(), "text": TEXT, "section": TEXT, "parent": TEXT, "category": papers.CATEGORY}
    | {"level": integer(), "page": optional(integer()), "start": integer(), "stop": integer(), "tokens": integer()}
    | {"page_breaks": _BREAKS},
)
_VECTORS: Final = TypedTable(
    "vectors", ("key",), {"key": TEXT, "size": integer(1), "content": BLOB, "summaries": BLOB, "notes": BLOB}
)
# In a file, the version of the figures is in their own table.
_PAPERS: Final = replace(
    papers.PAPERS,
    columns={name: papers.PAPERS.columns[name] for name in papers.PAPERS.stored if name != "figures_version"},
)
_WITH_ROWID: Final = replace(SQLITE, end="")  # for large rows
SCHEMA: Final = "".join(
    [
        *(
            table.create(SQLITE)
            for table in (_PAPERS, _FACTS, papers.SECTIONS, _CHUNKS, _NOTES, papers.STAGED, FIGURES)
        ),
        *(table.create(_WITH_ROWID) for table in (_TEXTS, _VECTORS)),
    ]
)
_INSERT_PAPER: Final = _PAPERS.insert(
    columns="key record content_hash metadata_hash chunking summary summary_kind chunk_count state".split()
)


def insert_paper(db: sqlite3.Connection, change: papers.Change, record: papers.PaperRecord) -> None:
    import numpy as np

    key = change.key
    if record.note is not None:
        db.execute(_NOTES.insert(), (key, dump_json(asdict(record.note))))
    if record.figures_version:
        values = (key, record.figures_version, dump_json([asdict(figure) for figure in change.figures]))
        db.execute(FIGURES.insert(), values)
    db.execute(_INSERT_PAPER, (*papers.paper_row(change, record), "ready"))
    db.executemany(papers.SECTIONS.insert(), papers.section_rows(change))
    db.executemany(
        _CHUNKS.insert(),
        [(key, c.index, int(c.category), c.tokens, text_hash(c.text), c.start, c.end) for c in change.chunks],
    )
    texts = [(*papers.chunk_row(chunk), " ".join(map(str, chunk.page_breaks))) for chunk in change.chunks]
    db.executemany(_TEXTS.insert(), texts)
    blobs = []
    for rows in (change.vectors, change.summary_vector, change.note_vectors):
        unit = np.allclose(np.linalg.norm(rows, axis=-1), 1, atol=1e-6)  # if so, stored bit-identical
        blobs.append((rows if unit else normalise(rows)).astype("<f4").tobytes())
    db.execute(_VECTORS.insert(), (key, change.summary_vector.shape[-1], *blobs))


_REMEDY = "Move it away and ingest the papers again."
# Tables whose rows belong to a row of `papers`.
_PARTS: Final = ("chunks", "sections", "notes", "figures", "chunk_texts", "vectors")
_STRAY = "key NOT IN (SELECT key FROM papers)"


class Catalog(papers.PaperCatalog):
    """The catalog's SQLite file: one connection, guarded by a lock, so that threads can share it."""

    _FACTS = _FACTS
    _RECORDS = (
        f"SELECT {papers.RECORD_COLUMNS}, note,"
        " CASE WHEN figures.key IS NULL THEN '' ELSE version END AS version, state"
        " FROM papers LEFT JOIN notes USING (key) LEFT JOIN figures USING (key) WHERE state IS NOT 'indexing'"
    )
    _READY_CHUNKS = "(SELECT c.* FROM papers p JOIN chunks c ON c.key = p.key WHERE p.state = 'ready')"
    _IS_READY = "state = 'ready'"

    def __init__(self, home: FolderHome) -> None:
        """Open or create the file; raises `InputError` if it is not a catalog of this format."""
        self._folder = home.figures  # created with the first image
        self._owns_images = home.copy_of is None
        self._lock = threading.RLock()
        self._path = path = home.catalog
        self._db = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=30, factory=TextConnection
        )
        try:
            self._db.execute("PRAGMA page_size=8192")  # for new files: texts of 2 kB leave half of a small page empty
            write_ahead(self._db)
            self._db.execute("PRAGMA synchronous=FULL")
            require_plain_schema(self._db, path, _REMEDY)
            self._db.executescript(SCHEMA)
            version = self.meta("schema")
            if version is None:
                self.set_meta("schema", str(SCHEMA_VERSION))
            elif not version.isdecimal():
                place = f"{path}: table meta, column value, row name='schema'"
                raise InputError(f"{place}: expected a number, not {version[:60]!r}.", help=_REMEDY)
            elif int(version) != SCHEMA_VERSION:
                raise OtherFormatError(path, int(version), SCHEMA_VERSION)
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise InputError(f"{path} is not a library catalog ({error}).", help=_REMEDY) from error
        except InputError:
            self._db.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _change_papers(self) -> Iterator[sqlite3.Connection]:
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

    def _write(self, statement: str, values: Sequence[object]) -> None:
        with self._change_papers() as db:
            db.execute(statement, values)

    def _naming_damage(self) -> AbstractContextManager[None]:
        return naming_damage(self._path, _REMEDY)

    def _among(self, column: str, values: Iterable[object]) -> tuple[str, object]:
        return f"{column} IN (SELECT value FROM json_each(?))", dump_json(list(values))

    def categories(self) -> dict[str, bytes]:
        """The category of each chunk of the ready papers, by key: one byte per chunk, in order."""
        rows = self._read(papers.CHUNKS, f"SELECT key, idx, category FROM {self._READY_CHUNKS} ORDER BY key, idx")
        return {key: bytes(kind for _, _, kind in of_paper) for key, of_paper in groupby(rows, key=itemgetter(0))}

    def stage(self, changes: Iterable[papers.Change]) -> None:
        rows = [(change, papers.serialize_change(change)) for change in changes]
        for change, _ in rows:
            self._put_images(change.images)
        with self._change_papers() as db:
            for change, row in rows:
                db.execute("INSERT OR REPLACE INTO staged VALUES (?, ?, ?)", row)
                if db.execute("UPDATE papers SET state = 'indexing' WHERE key = ?", (change.key,)).rowcount:
                    continue
                if change.record is not None:
                    db.execute(_INSERT_PAPER, (*papers.paper_row(change, change.record), "indexing"))

    def strays(self) -> set[str]:
        keys = {name: TypedTable(name, ("key",), {"key": TEXT}) for name in _PARTS}
        found = (self._read(keys[name], f"SELECT key FROM {name} WHERE {_STRAY}") for name in _PARTS)
        return {key for rows in found for (key,) in rows}

    def drop_strays(self) -> None:
        with self._change_papers() as db:
            for table in _PARTS:
                db.execute(f"DELETE FROM {table} WHERE {_STRAY}")
        self._drop_images(self.stray_images())

    def listed_counts(self, key: str) -> tuple[int, int]:
        """How many chunks of a paper the catalog lists, and how many passages its note has, ready or not."""
        notes = self._read(_NOTES, "SELECT key, note FROM notes WHERE key = ?", (key,))
        chunks = self._read(papers.CHUNKS, "SELECT idx FROM chunks WHERE key = ?", (key,))
        return len(chunks), sum(len(note.spans) for _, note in notes)

    def commit(self, changes: Iterable[papers.Change]) -> None:
        """Mark staged changes as done in one transaction: each paper is ready, or gone."""
        before: set[str] = set()
        with self._change_papers() as db:
            for change in changes:
                for figures in _read_figures(db, change.key):
                    before |= {figure.image_hash for figure in figures if figure.image_hash}
                for table in ("papers", "staged", *_PARTS):
                    db.execute(f"DELETE FROM {table} WHERE key = ?", (change.key,))
                if change.record is not None:
                    insert_paper(db, change, change.record)
        self._drop_images(before)

    def figures(self, key: str) -> tuple[PaperFigure, ...]:
        rows = self._read(FIGURES, f"SELECT f.key, f.figures {_READY} AND f.key = ?", (key,))
        return rows[0][1] if rows else ()

    def figures_by_paper(self) -> papers.Rows:
        return self._read(FIGURES, f"SELECT f.key, f.figures {_READY} ORDER BY f.key")

    def describe(self, key: str, figures: Sequence[PaperFigure]) -> None:
        with self._change_papers() as db:
            for stored in _read_figures(db, key):
                written = dump_json([asdict(figure) for figure in carry_descriptions(stored, figures)])
                db.execute("UPDATE figures SET figures = ? WHERE key = ?", (written, key))

    def image(self, name: str) -> bytes | None:
        if not is_image_hash(name):
            return None
        try:
            content = (self._folder / name).read_bytes()
        except OSError:
            return None
        return content if image_hash(content) == name else None

    def _put_images(self, images: Mapping[str, bytes]) -> None:
        """Store images by hash; existing ones are left unchanged. Raises OSError."""
        missing = {name: content for name, content in images.items() if self.image(name) is None}
        if missing:
            self._folder.mkdir(exist_ok=True)
        for name, content in missing.items():
            replace_file(self._folder / name, content)

    def _drop_images(self, names: Collection[str]) -> None:
        for name in set(names) - {name for _, name in self._images()} if names and self._owns_images else ():
            with suppress(OSError):
                (self._folder / Path(name).name).unlink()

    def incomplete_figures(self) -> set[str]:
        wanted = self._images()
        lost = {name for name in {name for _, name in wanted} if self.image(name) is None}
        return {key for key, name in wanted if name in lost}

    def stray_images(self) -> set[str]:
        """The names of files that are not images of a paper, including remnants of interrupted writes."""
        try:
            stored = {file.name for file in self._folder.iterdir()}
        except OSError:
            return set()
        return stored - {name for _, name in self._images()}

    def _images(self) -> list[tuple[str, str]]:
        """The images to which papers and staged changes refer, each with the paper's key."""
        figures = self._read(FIGURES, "SELECT key, figures FROM figures")
        figures += [
            (key, change.figures) for key, change in self._read(papers.STAGED, "SELECT key, change FROM staged")
        ]
        return [(key, figure.image_hash) for key, listed in figures for figure in listed if figure.image_hash]

    def read_chunks(self, ids: Iterable[str]) -> dict[str, Chunk]:
        rows = self._read(
            _TEXTS,
            "SELECT t.* FROM json_each(?) asked JOIN chunk_texts t"
            " ON t.key = json_extract(asked.value, '$[0]') AND t.idx = json_extract(asked.value, '$[1]')",
            (dump_json(split_ids(ids)),),
        )
        chunks = (Chunk(chunk_id(row[0], row[1]), *row) for row in rows)  # in the order of the columns
        return {chunk.id: chunk for chunk in chunks}

    def read_vectors(self, kind: VectorKind, ids: Iterable[str]) -> dict[str, Vector]:
        import numpy as np

        places: dict[str, dict[int, str]] = {}  # the ids by key and place
        for name in ids:
            with suppress(ValueError):
                key, place = (name, 0) if kind == "summaries" else split_chunk_id(name)
                places.setdefault(key, {})[place] = name
        found: dict[str, Vector] = {}
        among, value = self._among("key", places)
        for key, size, blob in self._read(_VECTORS, f"SELECT key, size, {kind} FROM vectors WHERE {among}", (value,)):
            if len(blob) % (4 * size):
                raise VectorStoreError(
                    f"catalog.sqlite: table vectors, column {kind}, row key={key!r}:"
                    f" expected vectors of {size} numbers, not {len(blob)} bytes."
                )
            rows = np.frombuffer(blob, "<f4").reshape(-1, size)
            found |= {name: rows[place] for place, name in places[key].items() if 0 <= place < len(rows)}
        return found

    def forget_texts(self, ids: Iterable[str]) -> None:
        with self._change_papers() as db:
            db.executemany("DELETE FROM chunk_texts WHERE key = ? AND idx = ?", split_ids(ids))
