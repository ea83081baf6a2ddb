"""The catalog of a library: changes to papers, their serialization, and the SQL that SQLite and PostgreSQL share."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar, get_args

from ..documents import Category, Chunk, Paper, Section, chunk_id
from ..documents.figures import PaperFigure
from ..documents.types import Note
from ..models.embeddings.protocol import Vector, Vectors
from ..plurals import counted
from ..table_columns import (
    BLOB,
    FLAG,
    TEXT,
    TypedTable,
    WrongValueError,
    choice,
    dump_json,
    integer,
    json_column,
    optional,
)
from .tables import TableConnection

SummaryKind = Literal["abstract", "extractive", "model"]
_CHUNK_FIELDS = tuple(item.name for item in fields(Chunk))


def _zeros(*shape: int) -> Vectors:
    import numpy as np

    return np.zeros(shape, np.float32)


@dataclass(frozen=True, slots=True)
class PaperRecord:
    """A paper in the catalog, with the user's note on it; an ingest compares the hashes to find changes.

    `figures_version` is the version of the code that read its figures; empty if they were never read.
    """

    paper: Paper
    metadata_hash: str
    chunking: str
    summary: str
    summary_kind: SummaryKind
    chunk_count: int
    note: Note | None = None
    figures_version: str = ""

    @property
    def passages(self) -> tuple[str, ...]:
        return self.note.passages if self.note else ()

    @property
    def passage_count(self) -> int:
        return len(self.note.spans) if self.note else 0


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk's position and metadata, without its text."""

    key: str
    index: int
    category: Category
    tokens: int
    text_hash: str

    @property
    def id(self) -> str:
        return chunk_id(self.key, self.index)


@dataclass(frozen=True, slots=True)
class Change:
    """Everything that the stores need to add a paper; if `record` is None, the change removes the paper.

    `vectors` are [n, d], one per chunk, `summary_vector` is [d], `note_vectors` are one per passage of the note.
    `images` are the figures' images by hash; a staged change has none, since they are stored immediately.
    """

    key: str
    record: PaperRecord | None
    sections: tuple[Section, ...]
    chunks: tuple[Chunk, ...]
    vectors: Vectors
    summary_vector: Vector
    note_vectors: Vectors = field(default_factory=lambda: _zeros(0, 0))
    figures: tuple[PaperFigure, ...] = ()
    images: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StagedChange:
    """A change as it is stored, without its vectors."""

    record: PaperRecord | None
    sections: tuple[Section, ...]
    chunks: tuple[Chunk, ...]
    figures: tuple[PaperFigure, ...] = ()


def removal(key: str) -> Change:
    return Change(key, None, (), (), _zeros(0, 0), _zeros(0))


def serialize_change(change: Change) -> tuple[str, str, bytes]:
    """Serialize a change as key, JSON and the bytes of its vectors."""
    import numpy as np

    body = {
        "record": asdict(change.record) if change.record else None,
        "sections": [asdict(section) for section in change.sections],
        # Not `asdict`, which copies every value and would double the time.
        "chunks": [{name: getattr(chunk, name) for name in _CHUNK_FIELDS} for chunk in change.chunks],
        "figures": [asdict(figure) for figure in change.figures],
    }
    notes = [change.note_vectors] if len(change.note_vectors) else []
    matrix = np.vstack([change.vectors, change.summary_vector[None, :], *notes]) if change.record else change.vectors
    return change.key, dump_json(body), np.ascontiguousarray(matrix, dtype="<f4").tobytes()


def deserialize_change(key: str, body: StagedChange, numbers: bytes) -> Change:
    """Deserialize a change that `serialize_change` wrote; raises `WrongValueError` if its vectors do not fit."""
    import numpy as np

    record = body.record
    if record is None:
        return removal(key)

    count = len(body.chunks)
    try:
        matrix = np.frombuffer(numbers, dtype="<f4").astype(np.float32).reshape(count + 1 + record.passage_count, -1)
    except ValueError:
        message = f"expected vectors for {counted(count, 'chunk')}, not {len(numbers)} bytes"
        raise WrongValueError(f"table staged, column vectors, row key={key!r}: {message}.") from None
    return Change(
        key, record, body.sections, body.chunks, matrix[:count], matrix[count], matrix[count + 1 :], body.figures
    )


def paper_row(change: Change, record: PaperRecord) -> tuple[object, ...]:
    """The columns of a paper that all catalogs have, in their order in `PAPERS`."""
    paper = record.paper
    head = (change.key, dump_json(asdict(paper)), paper.content_hash, record.metadata_hash, record.chunking)
    return (*head, record.summary, record.summary_kind, len(change.chunks))


def section_rows(change: Change) -> list[tuple[object, ...]]:
    return [
        (change.key, s.index, s.title, s.parent, s.level, int(s.category), s.start, s.end, s.searchable)
        for s in change.sections
    ]


def chunk_row(chunk: Chunk) -> tuple[object, ...]:
    """The columns of a chunk that all catalogs have, with its text."""
    head = (chunk.key, chunk.index, chunk.text, chunk.section, chunk.parent, int(chunk.category), chunk.level)
    return (*head, chunk.page, chunk.start, chunk.end, chunk.tokens)


def build_record(row: Sequence[Any]) -> PaperRecord:
    """The record in a row of a catalog, key first; raises `WrongValueError` if the record is another paper's."""
    key, paper, *rest = row[: 1 + len(fields(PaperRecord))]
    if paper.key != key:
        raise WrongValueError(f"table papers, column key, row key={key!r}: its record belongs to {paper.key!r}.")
    return PaperRecord(paper, *rest)


# The columns that both kinds of catalog have; values are decoded to typed records.
_KEY: Final = {"key": TEXT}
NOTE: Final = json_column("a note", Note)
FIGURE: Final = json_column("a figure", PaperFigure)
FACTS: Final = TypedTable("facts", ("name",), {"name": TEXT, "value": TEXT})
PAPERS: Final = TypedTable(
    "papers",
    ("key",),
    _KEY
    | {"state": choice("ready", "indexing"), "record": json_column("a paper's record", Paper), "content_hash": TEXT}
    | {"metadata_hash": TEXT, "chunking": TEXT, "summary": TEXT, "summary_kind": choice(*get_args(SummaryKind))}
    | {"chunk_count": integer(), "note": optional(replace(NOTE, source="notes.note"))}
    | {"version": replace(TEXT, source="figures.version"), "figures_version": TEXT},
)
RECORD_COLUMNS: Final = "key, record, metadata_hash, chunking, summary, summary_kind, chunk_count"
CATEGORY: Final = choice(*map(int, Category), by=Category)
SECTIONS: Final = TypedTable(
    "sections",
    ("key", "idx"),
    _KEY
    | {"idx": integer(), "title": TEXT, "parent": TEXT, "level": integer(), "category": CATEGORY}
    | {"start": integer(), "stop": integer(), "searchable": FLAG},
)
CHUNKS: Final = TypedTable(
    "chunks",
    ("key", "idx"),
    _KEY | {"idx": integer(), "category": CATEGORY, "tokens": integer(), "text_hash": TEXT},
)
STAGED: Final = TypedTable(
    "staged", ("key",), _KEY | {"change": json_column("a change of a paper", StagedChange), "vectors": BLOB}
)


Rows = list[tuple[Any, ...]]
Value = TypeVar("Value")


class PaperCatalog(ABC):
    """Which papers exist, their structure, and unfinished changes; readers see complete papers only.

    Thread-safe. A backend states how statements, with `?` for parameters, are executed, and where its tables differ.
    """

    _FACTS: ClassVar[TypedTable] = FACTS
    _RECORDS: ClassVar[str]
    """The query for the columns of `build_record`."""
    _READY_CHUNKS: ClassVar[str] = "chunks"
    _IS_READY: ClassVar[str] = "1 = 1"

    @abstractmethod
    def _read(self, table: TypedTable, query: str, values: Sequence[object] = ()) -> Rows:
        """The decoded rows of a query."""

    @abstractmethod
    def _write(self, statement: str, values: Sequence[object]) -> None:
        """Execute a statement that changes no paper."""

    @abstractmethod
    def _change_papers(self) -> AbstractContextManager[TableConnection]:
        """A transaction that changes papers."""

    @abstractmethod
    def _naming_damage(self) -> AbstractContextManager[None]:
        """Raise `DamagedFileError` for a `WrongValueError` in the block."""

    @abstractmethod
    def _among(self, column: str, values: Iterable[object]) -> tuple[str, object]:
        """The condition that a column has one of these values, and its parameter."""

    @abstractmethod
    def revision(self) -> tuple[int, int]:
        """A pair that changes whenever the catalog does; the first part only if another connection changed it."""

    def meta(self, name: str) -> str | None:
        """A fact about the whole library, such as the embedding model."""
        rows = self._read(self._FACTS, f"SELECT name, value FROM {self._FACTS.name} WHERE name = ?", (name,))
        return rows[0][1] if rows else None

    def set_meta(self, name: str, value: str) -> None:
        """Store a fact about the whole library."""
        self._write(self._FACTS.insert("update"), (name, value))

    def records(self) -> dict[str, PaperRecord]:
        """All ready papers by key, sorted by key."""
        with self._naming_damage():
            found = [build_record(row) for row in self._read(PAPERS, f"{self._RECORDS} ORDER BY key")]
        return {record.paper.key: record for record in found}

    def unfinished(self) -> list[str]:
        """Keys of the papers whose change is staged but not committed."""
        return [row[0] for row in self._read(STAGED, "SELECT key FROM staged ORDER BY key")]

    def sections(self, key: str) -> list[Section]:
        """The section tree of a paper, in reading order."""
        columns = ", ".join(SECTIONS.columns)
        rows = self._read(SECTIONS, f"SELECT {columns} FROM sections WHERE key = ? ORDER BY idx", (key,))
        return [Section(*row) for _, *row in rows]

    def chunk_rows(
        self, *, keys: Sequence[str] | None = None, categories: Sequence[int] | None = None
    ) -> list[ChunkRow]:
        """The chunks of ready papers within a scope, sorted by key and index; None sets no limit."""
        scope = [self._among("key", keys)] if keys is not None else []
        scope += [self._among("category", map(int, categories))] if categories is not None else []
        conditions = " AND ".join(["1 = 1", *(condition for condition, _ in scope)])
        query = f"SELECT key, idx, category, tokens, text_hash FROM {self._READY_CHUNKS} WHERE {conditions}"
        rows = self._read(CHUNKS, f"{query} ORDER BY key, idx", [value for _, value in scope])
        return [ChunkRow(*row) for row in rows]

    def ids_by_text(self, hashes: Iterable[str]) -> dict[str, str]:
        """The id of a chunk with each of these text hashes, if a ready paper has one."""
        among, value = self._among("text_hash", sorted(set(hashes)))
        rows = self._read(CHUNKS, f"SELECT text_hash, key, idx FROM {self._READY_CHUNKS} WHERE {among}", (value,))
        return {text: chunk_id(key, index) for text, key, index in rows}

    def update_metadata(self, records: Iterable[PaperRecord]) -> None:
        """Update the metadata of ready papers whose text and summary stay the same."""
        rows = [(dump_json(asdict(record.paper)), record.metadata_hash, record.paper.key) for record in records]
        with self._change_papers() as connection:
            connection.executemany("UPDATE papers SET record = ?, metadata_hash = ? WHERE key = ?", rows)

    def mark_stale(self, keys: Iterable[str]) -> None:
        """Have the next ingest reindex these papers even if their text is unchanged."""
        with self._change_papers() as connection:
            connection.executemany("UPDATE papers SET chunking = 'stale' WHERE key = ?", [(key,) for key in keys])

    @abstractmethod
    def stage(self, changes: Iterable[Change]) -> None:
        """Persist changes in full, so that they will be applied even after a crash."""

    def staged_change(self, key: str) -> Change:
        """A staged change as it was written; raises KeyError if there is none."""
        for row in self._read(STAGED, "SELECT key, change, vectors FROM staged WHERE key = ?", (key,)):
            with self._naming_damage():
                return deserialize_change(*row)
        raise KeyError(key)

    @abstractmethod
    def figures(self, key: str) -> tuple[PaperFigure, ...]:
        """The figures and tables of a paper, in reading order; none for an unknown key."""

    @abstractmethod
    def figures_by_paper(self) -> Iterable[tuple[str, Sequence[PaperFigure]]]:
        """The figures and tables of ready papers, with the key of each."""

    @abstractmethod
    def image(self, name: str) -> bytes | None:
        """The image with this hash; None if it is missing or damaged."""

    @abstractmethod
    def describe(self, key: str, figures: Sequence[PaperFigure]) -> None:
        """Store the descriptions of a paper's figures; ignores figures whose number or image has changed."""

    def incomplete_figures(self) -> set[str]:
        """Keys of papers with an image that is missing or damaged."""
        return set()

    def stray_images(self) -> set[str]:
        """Names of stored images that belong to no paper."""
        return set()

    def miscounted(self) -> set[str]:
        """Keys of ready papers whose listed chunks differ from their chunk count, or that have no sections."""
        rows = self._read(
            PAPERS,
            f"SELECT key FROM papers WHERE {self._IS_READY} AND NOT ("
            " chunk_count = (SELECT count(*) FROM chunks WHERE chunks.key = papers.key)"
            " AND chunk_count = (SELECT coalesce(max(idx) + 1, 0) FROM chunks WHERE chunks.key = papers.key)"
            " AND EXISTS (SELECT 1 FROM sections WHERE sections.key = papers.key))",
        )
        return {row[0] for row in rows}

    def strays(self) -> set[str]:
        """Keys that have chunks, sections, notes or figures but no paper."""
        return set()

    def drop_strays(self) -> None:  # noqa: B027  # a backend may have none
        """Delete chunks, sections, notes, figures and images that belong to no paper."""

    @abstractmethod
    def close(self) -> None:
        """Close the files or connections."""


class CurrentRecords:
    """The records of the ready papers by key, the same object for as long as the library is unchanged; thread-safe.

    `reopen` makes the other stores see what another process has written; `last_seen` returns the newest revision that a
    search has seen (see `LibraryStores`).
    """

    def __init__(
        self, catalog: PaperCatalog, reopen: Callable[[], None], last_seen: Callable[[], tuple[int, int] | None]
    ) -> None:
        self._catalog = catalog
        self._reopen = reopen
        self._last_seen = last_seen
        self._lock = threading.RLock()
        self._revision: tuple[int, int] | None = None
        self._records: Mapping[str, PaperRecord] = {}
        self._chunk_total = 0

    def __call__(self) -> Mapping[str, PaperRecord]:
        with self._lock:
            revision = self._catalog.revision()
            if revision != self._revision:
                if self._revision is not None and revision[0] != self._revision[0]:
                    self._reopen()
                self._records = self._catalog.records()
                self._chunk_total = sum(record.chunk_count for record in self._records.values())
                self._revision = revision
            return self._records

    def last(self) -> Mapping[str, PaperRecord]:
        """The records as last read; reads them if they never were."""
        return self._records or self()

    def read_searched(self) -> Mapping[str, PaperRecord]:
        """The records, at least as new as those of the last search; reread only if that search saw newer ones."""
        seen = self._last_seen()
        with self._lock:
            known = seen is not None and self._revision is not None and seen <= self._revision
            return self._records if known else self()

    def chunk_total(self) -> int:
        self()
        return self._chunk_total


class ReadOnce(Generic[Value]):
    """A cached value, read once per state of the library; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: tuple[object, Value] | None = None

    def get(self, state: object, read: Callable[[], Value]) -> Value:
        """The value in this state; reads it if the last call was for another state."""
        with self._lock:
            if self._held is None or self._held[0] is not state:
                self._held = state, read()
            return self._held[1]
