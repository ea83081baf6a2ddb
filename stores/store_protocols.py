"""The stores of a library for graph, tools and ingestion; each method's contract is documented here once.

`tests/integration/stores/conformance` checks it on folders and PostgreSQL. `home.py` has the rest of a home.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from ..documents import Chunk, chunk_id
from ..models.embeddings.protocol import Vector
from .metadata_store import MetadataStore
from .paper_catalog import CurrentRecords, PaperCatalog
from .paper_change import Change, PaperRecord
from .search_records import ScopedSearch, Scored, TextScope, VectorKind


class ChunkVectors(Protocol):
    """Texts and vectors of chunks, summaries and passages of notes."""

    def get_chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        """The existing chunks, by id."""

    def get_vectors(self, ids: Sequence[str], kind: VectorKind = "content") -> dict[str, Vector]:
        """The existing vectors of a kind, by id."""

    def stored_ids(self, kind: VectorKind = "content") -> set[str]:
        """The ids of all vectors of a kind."""

    def delete(self, ids: Sequence[str], kind: VectorKind = "content") -> None:
        """Delete chunks, summaries or passages of notes; unknown ids are ignored."""

    def read_through(self) -> None:
        """Read the vector of every record; raises `VectorStoreError` if one cannot be read."""

    def set_aside(self) -> Path:
        """Move an unreadable store out of the way; returns its new path."""

    def close(self) -> None:
        """Close open files, if any; the next call reopens them and sees other processes' writes."""
        return


def read_change(record: PaperRecord, vectors: ChunkVectors) -> Change | None:
    """The change that would add a paper with its stored texts and vectors; None if any of them is missing."""
    import numpy as np

    key = record.paper.key
    ids, places = ([chunk_id(key, at) for at in range(size)] for size in (record.chunk_count, record.passage_count))
    chunks, rows = vectors.get_chunks(ids), vectors.get_vectors(ids)
    summary, notes = vectors.get_vectors([key], "summaries"), vectors.get_vectors(places, "notes")
    if len(chunks.keys() & rows) < len(ids) or not summary or len(notes) < len(places):
        return None
    nothing = np.zeros((0, 0), np.float32)
    return Change(
        key=key,
        record=record,
        sections=(),
        chunks=tuple(chunks[name] for name in ids),
        vectors=np.stack([rows[name] for name in ids]) if ids else nothing,
        summary_vector=summary[key],
        note_vectors=np.stack([notes[place] for place in places]) if places else nothing,
    )


class WordIndex(Protocol):
    """BM25 over texts and section titles of chunks."""

    def exists(self) -> bool:
        """Whether an index exists, valid or not."""

    def create(self) -> None:
        """Create an empty index, replacing any existing one."""

    def put_all(self, papers: Iterator[tuple[str, Sequence[Chunk]]]) -> None:
        """Add papers that are not indexed yet, each with its key and chunks; a folder's index takes one commit."""

    def entries(self, keys: Collection[str] | None = None) -> dict[str, str]:
        """Text hashes by chunk id, for these papers or for all."""

    def search(self, terms: Sequence[str], k: int, scope: TextScope) -> Scored:
        """Ids and BM25 scores of the `k` best matching chunks, best first; ties by id."""

    def rarity(self, terms: Collection[str]) -> dict[str, float]:
        """How rare each term is: 1 if it occurs nowhere, near 0 if it occurs in every chunk."""

    def close(self) -> None:
        """Close open files, if any; the next call reopens them and sees other processes' writes."""
        return


class LibraryStores(ABC):
    """The stores of one library, opened together, and metadata about its papers from services."""

    catalog: PaperCatalog
    vectors: ChunkVectors
    words: WordIndex
    metadata: MetadataStore

    def last_seen_revision(self) -> tuple[int, int] | None:
        """The newest `PaperCatalog.revision` that a search has seen; None if a search alone may see an older state."""
        return None

    @abstractmethod
    def search(self, records: CurrentRecords) -> ScopedSearch:
        """The vector search over the papers of these records."""

    def state(self) -> list[tuple[bool, str, str]]:
        """Findings about the stores other than their contents, each as (fine, topic, message)."""
        return []

    @abstractmethod
    def carry_out(self, changes: Sequence[Change]) -> None:
        """Apply staged changes to all stores and make them visible; idempotent."""

    def restore(self) -> list[str]:
        """Restore what one store lost from another, the writer lock held; returns the keys of the papers."""
        return []

    def close(self) -> None:
        """Close the files or connections."""
        self.catalog.close()
