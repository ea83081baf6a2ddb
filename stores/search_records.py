"""Inputs and results of library searches, and the search code shared by all backends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypedDict, TypeVar

from ..documents import Category, Paper, split_chunk_id
from ..errors import InputError
from ..models.embeddings.protocol import Vector
from .paper_catalog import CurrentRecords
from .paper_change import PaperRecord

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
    """Filters of a search; None sets no limit. `ids` are chunk ids."""

    keys: Collection[str] | None = None
    categories: Collection[Category] | None = None
    ids: Collection[str] | None = None


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


class SearchLimits(TypedDict, total=False):
    """Filters of a search as its caller gives them; None and a missing one set no limit.

    `years` are the first and last, inclusive; `venue` is a part of its name; `ids` are chunk ids, for words only.
    """

    keys: Collection[str] | None
    categories: Collection[Category] | None
    years: tuple[int, int] | None
    venue: str | None
    ids: Collection[str] | None


def text_scope(limits: SearchLimits, records: Callable[[], Mapping[str, PaperRecord]]) -> TextScope:
    """The scope of a search; `records` are called only to limit years and venue."""
    keys, years, venue = limits.get("keys"), limits.get("years"), (limits.get("venue") or "").casefold()
    if years is not None or venue:
        keys = frozenset(
            key
            for key, record in records().items()
            if (years is None or (record.paper.year is not None and years[0] <= record.paper.year <= years[1]))
            and venue in record.paper.venue.casefold()
        ).intersection(*([] if keys is None else [keys]))
    return TextScope(keys, limits.get("categories"), limits.get("ids"))


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

    `_one_state` is true where a single statement finds chunks: it sees the newest state of the library, so the records
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
