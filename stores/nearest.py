"""Nearest chunks within a scope: by id where the scope is small, else by asking for more than enough."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from citeloom.documents import Category, Paper, split_chunk_id
from citeloom.models.embedding import Vector
from citeloom.stores.changes import PaperRecord

if TYPE_CHECKING:
    from citeloom.stores.library import Library

# Up to so many chunks a scope is searched by id with an exact product (12 ms for 400 of 100,000 chunks);
# beyond that the index is asked for more than enough and the rest dropped.
_EXACT_LIMIT: Final = 600
_OVERFETCH: Final = 4


@dataclass(frozen=True, slots=True)
class NearPaper:
    """A paper near to a query, with the cosine (-1 to 1) of what is nearest of it.

    `note` is the passage of the user's note that it is near by, empty when it is the summary.
    """

    paper: Paper
    summary: str
    score: float
    note: str = ""


def nearest_papers(library: Library, vector: Vector, k: int) -> list[NearPaper]:
    """The `k` papers whose summary, or a passage of the user's note on them, is nearest; equal ones go by key."""
    records = library.records()
    if k < 1 or not records:
        return []
    unready = len(library.catalog.unfinished())  # another process writes them; what is there of them is not shown
    best = {
        key: NearPaper(records[key].paper, summary, score)
        for key, summary, score in library.store.nearest_summaries(vector, min(len(records), k) + unready)
        if key in records
    }
    # So many that one note of many passages cannot keep out another paper's.
    most = max(len(record.note.spans) if record.note else 0 for record in records.values())
    for identifier, text, score in library.store.nearest_passages(vector, k * most) if most else []:
        key = split_chunk_id(identifier)[0]
        if key in records and (key not in best or score > best[key].score):
            best[key] = NearPaper(records[key].paper, records[key].summary, score, text)
    return sorted(best.values(), key=lambda item: (-item.score, item.paper.key))[:k]


def keys_within(
    records: Mapping[str, PaperRecord],
    keys: Collection[str] | None,
    years: tuple[int, int] | None,
    venue: str | None,
) -> frozenset[str] | None:
    """The keys of the papers that all limits leave; None when there is no limit."""
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


def nearest_ids(
    library: Library, vector: Vector, k: int, keys: Collection[str] | None, categories: Collection[Category] | None
) -> list[tuple[str, float]]:
    """Ids and cosines of the `k` nearest chunks of these papers and categories; equal cosines go by chunk id."""
    total = library.chunk_count()
    if k < 1 or not total:
        return []
    if keys is not None or categories is not None:
        listed = None if keys is None else sorted(keys)
        kinds = None if categories is None else sorted(categories)
        rows = library.catalog.chunk_rows(keys=listed, categories=kinds, limit=_EXACT_LIMIT + 1)
        if len(rows) <= _EXACT_LIMIT:
            return _ordered(library.cosines(vector, [row.id for row in rows]).items())[:k]
    return _widened(library, vector, k, keys, categories)


def _widened(
    library: Library, vector: Vector, k: int, keys: Collection[str] | None, categories: Collection[Category] | None
) -> list[tuple[str, float]]:
    total = library.chunk_count()
    asked = min(total, math.ceil(k * _rarity(library, total, keys, categories)))
    while True:
        near = library.store.nearest_ids(vector, asked)
        found = [
            (name, cosine)
            for name, cosine in near
            if library.has_chunk(name) and (keys is None or split_chunk_id(name)[0] in keys)
        ]
        if categories is not None:
            fitting = library.catalog.of_categories([name for name, _ in found], categories)
            found = [item for item in found if item[0] in fitting]
        if asked >= total:
            # All that ready papers have; the store holds more while another process writes.
            total = library.store.chunk_total()
        if len(found) >= k or asked >= total or len(near) < asked:
            return _ordered(found)[:k]
        asked = min(total, asked * _OVERFETCH)


def _rarity(
    library: Library, total: int, keys: Collection[str] | None, categories: Collection[Category] | None
) -> float:
    """How many of the nearest chunks to ask for, for each that is wanted: by the share that the scope has."""
    rarity = 1.0
    if keys is not None:
        records = library.records()
        rarity *= _OVERFETCH / 2 * total / max(1, sum(records[key].chunk_count for key in keys if key in records))
    if categories is not None:
        rarity *= _OVERFETCH
    return rarity


def _ordered(scored: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(scored, key=lambda item: (-item[1], item[0]))
