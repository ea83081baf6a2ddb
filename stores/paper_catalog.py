"""The catalog of a library: its contract, and the statements that SQLite and PostgreSQL share."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any, ClassVar, Generic, TypeVar

from ..documents import Section, chunk_id
from ..documents.figures import PaperFigure
from ..table_columns import TypedTable, dump_json
from .paper_change import (
    CHUNKS,
    FACTS,
    PAPERS,
    SECTIONS,
    STAGED,
    Change,
    ChunkRow,
    PaperRecord,
    build_record,
    deserialize_change,
)
from .tables import TableConnection

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
        """Changes whenever the catalog does; the first part only when another connection changed it."""

    def meta(self, name: str) -> str | None:
        """A fact about the library as a whole, such as the embedding model."""
        rows = self._read(self._FACTS, f"SELECT name, value FROM {self._FACTS.name} WHERE name = ?", (name,))
        return rows[0][1] if rows else None

    def set_meta(self, name: str, value: str) -> None:
        """Store a fact about the library as a whole."""
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
        """For each of these text hashes found in a ready paper, the id of a chunk with that text."""
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
        """Persist changes in full: from here on they will be applied, even after a crash."""

    def staged(self, key: str) -> Change:
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

    `reopen` makes the other stores see what another process has written; `last_seen` is the newest revision that a
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
        """The records as they were last read; read now if they never were."""
        return self._records or self()

    def searched(self) -> Mapping[str, PaperRecord]:
        """The records, at least as new as those of the last search; reread only if that search saw newer ones."""
        seen = self._last_seen()
        with self._lock:
            known = seen is not None and self._revision is not None and seen <= self._revision
            return self._records if known else self()

    def chunk_total(self) -> int:
        self()
        return self._chunk_total


class ReadOnce(Generic[Value]):
    """What was read from a library in one state, which is the same object until it changes; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: tuple[object, Value] | None = None

    def get(self, state: object, read: Callable[[], Value]) -> Value:
        """The value in this state, read if another state was asked for last."""
        with self._lock:
            if self._held is None or self._held[0] is not state:
                self._held = state, read()
            return self._held[1]
