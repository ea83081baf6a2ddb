"""The stores of a library for graph, tools and ingestion, and the search code shared by all backends.

Each contract is documented here once; `tests/integration/stores/conformance` checks it on folders and PostgreSQL.
`home.py` has the rest of a home.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final, Literal, Protocol, TypeVar

from ..documents import Category, Chunk, Paper, chunk_id, split_chunk_id
from ..errors import InputError
from ..models.embeddings.protocol import Vector
from .metadata_store import MetadataStore
from .paper_catalog import Change, CurrentRecords, PaperCatalog, PaperRecord

Scored = list[tuple[str, float]]
VectorKind = Literal["content", "summaries", "notes"]  # by chunk id, key, and passage id
_TRIES: Final = 3  # for a search during which another process changes the library
Found = TypeVar("Found")


class VectorStoreError(InputError):
    """The vector store, or a part of it, is missing or cannot be read."""

    default_help = "Run '{citeloom} doctor --repair': it is rebuilt from the papers' files."


class FullTextError(InputError):
    """The full-text index is missing or cannot be read; it can be rebuilt without embedding anything."""

    default_help = "Run '{citeloom} doctor --repair': it is rebuilt from the stored papers."


@dataclass(frozen=True, slots=True)
class TextScope:
    """Filters of a search; None sets no limit.

    `ids` are chunk ids, for words only; `years` are the first and last, inclusive; `venue` is a part of its name.
    """

    keys: Collection[str] | None = None
    categories: Collection[Category] | None = None
    ids: Collection[str] | None = None
    years: tuple[int, int] | None = None
    venue: str = ""

    def holds(self, paper: Paper) -> bool:
        """Whether a paper is in scope, whatever its sections."""
        in_time = self.years is None or (paper.year is not None and self.years[0] <= paper.year <= self.years[1])
        of_venue = self.venue.casefold() in paper.venue.casefold()
        return in_time and of_venue and (self.keys is None or paper.key in self.keys)

    def by_keys(self, records: Callable[[], Mapping[str, PaperRecord]]) -> TextScope:
        """The same scope with keys in place of years and venue; `records` are called only to limit these."""
        if self.years is None and not self.venue:
            return self
        limits = replace(self, keys=None if self.keys is None else frozenset(self.keys))
        keys = frozenset(key for key, record in records().items() if limits.holds(record.paper))
        return TextScope(keys, self.categories, self.ids)


EVERYTHING: Final = TextScope()


@dataclass(frozen=True, slots=True)
class NearPaper:
    """A paper near a query, with the cosine (-1 to 1) of its nearest text.

    `note` is the nearest passage of the user's note; empty if the summary was nearer.
    """

    paper: Paper
    summary: str
    score: float
    note: str = ""


def split_ids(ids: Iterable[str]) -> list[tuple[str, int]]:
    """Keys and indices of the valid chunk ids, without duplicates."""
    pairs: dict[tuple[str, int], None] = {}
    for identifier in ids:
        with suppress(ValueError):
            pairs[split_chunk_id(identifier)] = None
    return list(pairs)


def repeat_until_stable(
    records: Callable[[], Mapping[str, PaperRecord]],
    search: Callable[[Mapping[str, PaperRecord]], Found],
) -> Found:
    """Repeat a search until the library has not changed meanwhile, so that its results reflect one state."""
    for _ in range(_TRIES - 1):
        before = records()
        found = search(before)
        if records() is before:
            return found
    return search(records())


def cosines(vectors: Mapping[str, Vector], vector: Vector) -> dict[str, float]:
    """The cosine of each of these unit vectors with another unit vector, by id."""
    import numpy as np

    return {identifier: float(np.dot(row, vector)) for identifier, row in vectors.items()}


def sort_scores(scored: Iterable[tuple[str, float]]) -> Scored:
    """Sort best first; ties by id."""
    return sorted(scored, key=lambda item: (-item[1], item[0]))


class ScopedSearch(ABC):
    """The nearest chunks and papers of a library; a backend implements the three searches.

    `_one_state` is true if a single statement finds chunks: it sees the newest state of the library, so the records
    used to estimate the size of a scope may be older.
    """

    _one_state: ClassVar[bool] = False

    def __init__(self, records: CurrentRecords, get_vectors: Callable[[Sequence[str]], Mapping[str, Vector]]) -> None:
        self._records = records
        self._get_vectors = get_vectors

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """The cosine of each of these chunks; unknown ids are skipped."""
        return cosines(self._get_vectors(ids), vector)

    def ids(self, vector: Vector, k: int, scope: TextScope) -> Scored:
        """Ids and cosines of the `k` nearest chunks in the papers and categories of a scope; ties by chunk id."""
        keys = None if scope.keys is None else set(scope.keys)
        kinds = None if scope.categories is None else tuple(sorted(set(scope.categories)))

        def search(records: Mapping[str, PaperRecord]) -> Scored:
            wanted = keys if keys is None or self._one_state else records.keys() & keys
            if k < 1 or not records or kinds == () or (wanted is not None and not wanted):
                return []
            return self._near_chunks(vector, k, TextScope(wanted, kinds), records)

        if self._one_state:
            return search(self._records.last())
        return repeat_until_stable(self._records, search)

    def papers(self, vector: Vector, k: int) -> list[NearPaper]:
        """The `k` papers with the nearest summary or passage of a note; ties by key."""

        def search(records: Mapping[str, PaperRecord]) -> list[NearPaper]:
            most = min(k, len(records))
            if most < 1:
                return []
            near = self._near_summaries(vector, most, records)
            best = {key: NearPaper(records[key].paper, records[key].summary, score) for key, score in near}
            # Enough that one note with many passages cannot crowd out another paper's.
            counts = [record.passage_count for record in records.values()]
            wanted = min(most * max(counts), sum(counts))
            for identifier, score in self._near_passages(vector, wanted, records) if wanted else ():
                key, place = split_chunk_id(identifier)
                note = records[key].note
                if note is not None and (key not in best or score > best[key].score):
                    best[key] = NearPaper(records[key].paper, records[key].summary, score, note.passages[place])
            return sorted(best.values(), key=lambda item: (-item.score, item.paper.key))[:most]

        return repeat_until_stable(self._records, search)

    @abstractmethod
    def _near_chunks(self, vector: Vector, k: int, scope: TextScope, records: Mapping[str, PaperRecord]) -> Scored:
        """Ids and cosines of the nearest chunks in a scope that is not empty."""

    @abstractmethod
    def _near_summaries(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        """Keys and cosines of the nearest summaries of these papers."""

    @abstractmethod
    def _near_passages(self, vector: Vector, k: int, records: Mapping[str, PaperRecord]) -> Scored:
        """Ids and cosines of the nearest passages of notes of these papers."""


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


def read_change(record: PaperRecord, store: ChunkVectors) -> Change | None:
    """The change that adds a paper with its stored texts and vectors; None if any of them is missing."""
    import numpy as np

    key = record.paper.key
    ids, places = ([chunk_id(key, at) for at in range(size)] for size in (record.chunk_count, record.passage_count))
    chunks, rows = store.get_chunks(ids), store.get_vectors(ids)
    summary, notes = store.get_vectors([key], "summaries"), store.get_vectors(places, "notes")
    if len(chunks.keys() & rows) < len(ids) or not summary or len(notes) < len(places):
        return None
    vectors, note_vectors = (
        np.stack([found[name] for name in names]) if names else np.zeros((0, 0), np.float32)
        for found, names in ((rows, ids), (notes, places))
    )
    return Change(key, record, (), tuple(chunks[name] for name in ids), vectors, summary[key], note_vectors)


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
