"""The interface to a library's stores for graph, tools and ingestion, implemented for folders and PostgreSQL.

The contract of each method is documented here once; `tests/integration/stores/conformance` checks it on every backend.
The other parts of a home are in `backends.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from ..documents import Category, Chunk, Section, chunk_id
from ..documents.figures import PaperFigure
from ..models.embeddings.protocol import Vector
from .metadata_store import MetadataStore
from .paper_change import Change, ChunkRow, PaperRecord
from .search_records import NearPaper, PaperRecords, Scored, StoredChunk, TextScope, VectorKind


class Figures(Protocol):
    """Figures and tables of papers with their images; they are written and removed with the change of their paper."""

    def of(self, key: str) -> tuple[PaperFigure, ...]:
        """The figures and tables of a paper, in reading order; none for an unknown key."""

    def counts(self) -> dict[str, tuple[int, int]]:
        """How many figures and tables each paper has, if they were read."""

    def image(self, name: str) -> bytes | None:
        """The image with this hash; None if it is missing or damaged."""

    def describe(self, key: str, figures: Sequence[PaperFigure]) -> None:
        """Store the descriptions of a paper's figures; ignores figures whose number or image has changed."""

    def described(self) -> dict[str, tuple[PaperFigure, ...]]:
        """The figures with a description, by paper."""

    def tables(self) -> dict[str, tuple[PaperFigure, ...]]:
        """The tables whose rows are part of chunks, by paper."""

    def incomplete(self) -> set[str]:
        """Keys of papers with an image that is missing or damaged."""

    def stray_images(self) -> set[str]:
        """Names of stored images that belong to no paper."""


class PaperCatalog(Protocol):
    """Which papers exist, their structure, and unfinished changes; readers see complete papers only."""

    @property
    def figures(self) -> Figures: ...

    def revision(self) -> tuple[int, int]:
        """Changes whenever the catalog does; the first part only when another connection changed it."""

    def meta(self, name: str) -> str | None:
        """A fact about the library as a whole, such as the embedding model."""

    def set_meta(self, name: str, value: str) -> None:
        """Store a fact about the library as a whole."""

    def records(self) -> dict[str, PaperRecord]:
        """All ready papers by key, sorted by key."""

    def unfinished(self) -> list[str]:
        """Keys of the papers whose change is staged but not committed."""

    def sections(self, key: str) -> list[Section]:
        """The section tree of a paper, in reading order."""

    def chunk_rows(
        self, *, keys: Sequence[str] | None = None, categories: Sequence[int] | None = None
    ) -> list[ChunkRow]:
        """The chunks of ready papers within a scope, sorted by key and index; None sets no limit."""

    def ids_by_text(self, hashes: Iterable[str]) -> dict[str, str]:
        """For each of these text hashes found in a ready paper, the id of a chunk with that text."""

    def update_metadata(self, records: Iterable[PaperRecord]) -> None:
        """Update the metadata of ready papers whose text and summary stay the same."""

    def mark_stale(self, keys: Iterable[str]) -> None:
        """Have the next ingest reindex these papers even if their text is unchanged."""

    def stage(self, changes: Iterable[Change]) -> None:
        """Persist changes in full: from here on they will be applied, even after a crash."""

    def staged(self, key: str) -> Change:
        """A staged change as it was written; raises KeyError if there is none."""

    def miscounted(self) -> set[str]:
        """Keys of ready papers whose listed chunks differ from their chunk count, or that have no sections."""

    def strays(self) -> set[str]:
        """Keys that have chunks, sections, notes or figures but no paper."""

    def drop_strays(self) -> None:
        """Delete chunks, sections, notes, figures and images that belong to no paper."""

    def close(self) -> None:
        """Close the files or connections."""


class ChunkVectors(Protocol):
    """Texts and vectors of chunks, summaries and passages of notes."""

    def get_chunks(self, ids: Sequence[str], *, vectors: bool = False) -> dict[str, StoredChunk]:
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
        """Close open files; the next call reopens them and sees other processes' writes."""


def read_change(record: PaperRecord, vectors: ChunkVectors) -> Change | None:
    """The change that would add a paper with its stored texts and vectors; None if any of them is missing."""
    import numpy as np

    key, places = record.paper.key, [chunk_id(record.paper.key, place) for place in range(record.passage_count)]
    stored = list(vectors.get_chunks([chunk_id(key, i) for i in range(record.chunk_count)], vectors=True).values())
    stored.sort(key=lambda each: each.chunk.index)
    rows = [each.vector for each in stored if each.vector is not None]
    summary, notes = vectors.get_vectors([key], "summaries"), vectors.get_vectors(places, "notes")
    if len(rows) < record.chunk_count or not summary or len(notes) < len(places):
        return None
    nothing = np.zeros((0, 0), np.float32)
    return Change(
        key=key,
        record=record,
        sections=(),
        chunks=tuple(each.chunk for each in stored),
        vectors=np.stack(rows) if rows else nothing,
        summary_vector=summary[key],
        note_vectors=np.stack([notes[place] for place in places]) if places else nothing,
    )


class WordIndex(Protocol):
    """BM25 over texts and section titles of chunks."""

    def exists(self) -> bool:
        """Whether an index exists, valid or not."""

    def create(self) -> None:
        """Create an empty index, replacing any existing one."""

    def put_all(self, chunks: Iterable[Chunk]) -> None:
        """Add the chunks of papers that are not indexed yet, in one commit."""

    def entries(self, keys: Collection[str] | None = None) -> dict[str, str]:
        """Text hashes by chunk id, for these papers or for all."""

    def search(self, terms: Sequence[str], k: int, scope: TextScope) -> Scored:
        """Ids and BM25 scores of the `k` best matching chunks, best first; ties by id."""

    def rarity(self, terms: Collection[str]) -> dict[str, float]:
        """How rare each term is: 1 if it occurs nowhere, near 0 if it occurs in every chunk."""

    def close(self) -> None:
        """Close open files; the next call reopens them and sees other processes' writes."""


class VectorSearch(Protocol):
    """Nearest chunks and papers."""

    def ids(
        self, vector: Vector, k: int, keys: Collection[str] | None, categories: Collection[Category] | None
    ) -> Scored:
        """Ids and cosines of the `k` nearest chunks of these papers and categories; ties by chunk id."""

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """The cosine of each of these chunks; unknown ids are skipped."""

    def papers(self, vector: Vector, k: int) -> list[NearPaper]:
        """The `k` papers whose summary, or a passage of whose note, is nearest; ties by key."""


class LibraryStores(Protocol):
    """The stores of one library, opened together."""

    @property
    def catalog(self) -> PaperCatalog: ...

    @property
    def vectors(self) -> ChunkVectors: ...

    @property
    def words(self) -> WordIndex: ...

    @property
    def metadata(self) -> MetadataStore:
        """Metadata about the papers from services."""

    def last_seen_revision(self) -> tuple[int, int] | None:
        """The newest revision that a search has seen, as `PaperCatalog.revision` gives it.

        None if a search does not by itself see a single state of the library, the newest.
        """

    def search(self, records: PaperRecords) -> VectorSearch:
        """The vector search over the papers of these records."""

    def state(self) -> list[tuple[bool, str, str]]:
        """Findings about the stores other than their contents, each as (fine, topic, message)."""

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Apply staged changes to all stores and make them visible; idempotent."""

    def restore(self) -> list[str]:
        """Restore what one store has lost from another; returns the keys of the papers.

        The caller holds the writer lock.
        """

    def close(self) -> None:
        """Close the files or connections."""
