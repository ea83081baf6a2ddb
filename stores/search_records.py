"""What searches of a library take and return, whatever its backend, and what all backends do with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from ..documents import Category, Chunk, Paper, split_chunk_id
from ..errors import InputError
from ..models.embeddings.protocol import Vector
from .paper_change import PaperRecord

Scored = list[tuple[str, float]]

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
class StoredChunk:
    """A chunk in the vector store; `vector` is set only if requested."""

    chunk: Chunk
    text_hash: str
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class NearPaper:
    """A paper near a query, with the cosine (-1 to 1) of its nearest text.

    `note` is the nearest passage of the user's note; empty if the summary was nearer.
    """

    paper: Paper
    summary: str
    score: float
    note: str = ""


def keys_within(
    records: Mapping[str, PaperRecord],
    keys: Collection[str] | None,
    years: tuple[int, int] | None,
    venue: str | None,
) -> frozenset[str] | None:
    """The keys of the papers that match all filters; None if there is no filter."""
    if keys is None and years is None and not venue:
        return None
    asked = None if keys is None else frozenset(keys)
    wanted = (venue or "").casefold()
    return frozenset(
        key
        for key, record in records.items()
        if (asked is None or key in asked)
        and (years is None or (record.paper.year is not None and years[0] <= record.paper.year <= years[1]))
        and wanted in record.paper.venue.casefold()
    )


def unchanged(
    records: Callable[[], Mapping[str, PaperRecord]],
    search: Callable[[Mapping[str, PaperRecord]], Found],
) -> Found:
    """Repeat a search until the library did not change during it, so that its results come from one state."""
    for _ in range(_TRIES - 1):
        before = records()
        found = search(before)
        if records() is before:
            return found
    return search(records())


def best_papers(records: Mapping[str, PaperRecord], summaries: Scored, passages: Scored, k: int) -> list[NearPaper]:
    """The `k` nearest papers by the cosines of their summaries and of the passages of notes; ties by key."""
    best = {key: NearPaper(records[key].paper, records[key].summary, score) for key, score in summaries}
    for identifier, score in passages:
        key, place = split_chunk_id(identifier)
        note = records[key].note
        if note is not None and (key not in best or score > best[key].score):
            best[key] = NearPaper(records[key].paper, records[key].summary, score, note.passages[place])
    return sorted(best.values(), key=lambda item: (-item.score, item.paper.key))[:k]


def cosines(vectors: Mapping[str, Vector], vector: Vector) -> dict[str, float]:
    """The cosine of each of these unit vectors with another unit vector, by id."""
    import numpy as np

    return {identifier: float(np.dot(row, vector)) for identifier, row in vectors.items()}


def ordered(scored: Iterable[tuple[str, float]]) -> Scored:
    """Sort best first; ties by id."""
    return sorted(scored, key=lambda item: (-item[1], item[0]))
