"""Search by descriptions of figures: a description leads to the passage with the figure's caption.

Descriptions are written by a vision model. They are searched by vector and by BM25 like passages, but never returned as
text of a paper: a search always returns chunks. A library has only a few for each paper, so they are held in memory and
compared exactly, whatever the backend.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ..documents import Chunk, chunk_id, split_chunk_id
from ..documents.figures import PaperFigure
from ..documents.types import Span
from ..models.embeddings.protocol import Vector, Vectors, decode_vector
from .paper_catalog import CurrentRecords, PaperCatalog, ReadOnce
from .store_protocols import Scored, TextScope, WordIndex, sort_scores
from .text_analysis import K1, B, analyze

_NO_VECTORS: Final[Vectors] = np.zeros((0, 0), np.float32)


@dataclass(frozen=True, slots=True)
class _Descriptions:
    """All descriptions of a library, each with the chunk that it leads to, its vector and its terms."""

    chunks: tuple[str, ...] = ()
    figures: Mapping[str, tuple[PaperFigure, ...]] = field(default_factory=dict)  # by chunk
    vectors: Vectors = field(default_factory=lambda: _NO_VECTORS)
    terms: tuple[Counter[str], ...] = ()
    mean_length: float = 1.0
    tables: Mapping[str, Sequence[Span]] = field(default_factory=dict)  # their first and last chunks, by paper


class DescribedFigures:
    """Caches the descriptions and the places of tables in a library; reloads them when the library changes."""

    def __init__(self, catalog: PaperCatalog, words: WordIndex, records: CurrentRecords) -> None:
        self._catalog = catalog
        self._words = words
        self._records = records
        self._loaded = ReadOnce[_Descriptions]()

    def of(self, chunks: Iterable[Chunk]) -> tuple[PaperFigure, ...]:
        """The described figures whose captions are in these chunks."""
        held = self._descriptions().figures
        return tuple(figure for chunk in chunks for figure in held.get(chunk.id, ()))

    def by_chunk(self) -> Mapping[str, tuple[PaperFigure, ...]]:
        """All described figures by the id of the chunk with their caption."""
        return self._descriptions().figures

    def fingerprint(self) -> bytes:
        """A fingerprint of all descriptions; empty if there are none."""
        held = self._descriptions().figures
        said = [(name, figure.described_by, figure.description) for name, of in sorted(held.items()) for figure in of]
        return json.dumps(said).encode() if said else b""

    def chunks_of_tables(self, ids: Iterable[str]) -> set[str]:
        """The chunks among these that contain table rows, in the state that a search has just seen."""
        tables = self._descriptions(searched=True).tables

        def has_rows(name: str) -> bool:
            key, index = split_chunk_id(name)
            return any(first <= index <= last for first, last in tables.get(key, ()))

        return set(filter(has_rows, ids))

    def near(self, found: Scored, vector: Vector, k: int, scope: TextScope) -> Scored:
        """The `k` nearest chunks: those `found` by text, merged with those found by figure descriptions."""
        held = self._descriptions(searched=True)
        if not held.chunks or k < 1:
            return found
        least = found[-1][1] if len(found) >= k else -1.0
        near = {name: score for name, score in self._cosines(held, vector).items() if score > least}
        return sort_scores(_keep_highest((*found, *self._filter_scope(near, scope).items())).items())[:k]

    def nearest(self, cosines: dict[str, float], vector: Vector) -> dict[str, float]:
        """The cosine of each chunk, or of its figure's description if that is higher."""
        held = self._descriptions()
        if not held.chunks:
            return cosines
        described = self._cosines(held, vector)
        return {name: max(cosine, described.get(name, cosine)) for name, cosine in cosines.items()}

    def matching(self, found: Scored, terms: Sequence[str], k: int, scope: TextScope) -> Scored:
        """The `k` best matching chunks: those `found` by their words, merged with matches in figure descriptions."""
        held = self._descriptions(searched=True)
        wanted = {term for term in terms if any(term in words for words in held.terms)}
        if not wanted or k < 1:
            return found
        # Uses the frequencies of the whole library, so that scores are comparable with those of passages.
        passages, rarity = self._records.chunk_total(), self._words.rarity(wanted)
        total = passages + len(held.terms)
        scores: dict[int, float] = defaultdict(float)
        for term in wanted:
            rows = [(place, words) for place, words in enumerate(held.terms) if term in words]
            count = round((1 - rarity[term]) * (passages + 1)) + len(rows)
            idf = math.log(1 + (total - count + 0.5) / (count + 0.5))
            for place, words in rows:
                length = 1 - B + B * words.total() / held.mean_length
                scores[place] += idf * (1 + K1) * words[term] / (words[term] + K1 * length)
        described = _keep_highest((held.chunks[place], score) for place, score in scores.items())
        return sort_scores(_keep_highest((*found, *self._filter_scope(described, scope).items())).items())[:k]

    def _cosines(self, held: _Descriptions, vector: Vector) -> dict[str, float]:
        scores = np.einsum("ij,j->i", held.vectors, vector)
        return _keep_highest(zip(held.chunks, map(float, scores), strict=True))

    def _filter_scope(self, scored: Mapping[str, float], scope: TextScope) -> dict[str, float]:
        found = {
            name: score
            for name, score in scored.items()
            if (scope.ids is None or name in scope.ids)
            and (scope.keys is None or split_chunk_id(name)[0] in scope.keys)
        }
        if scope.categories is None or not found:
            return found
        keys = sorted({split_chunk_id(name)[0] for name in found})
        rows = self._catalog.chunk_rows(keys=keys, categories=[int(kind) for kind in scope.categories])
        return {row.id: found[row.id] for row in rows if row.id in found}

    def _descriptions(self, *, searched: bool = False) -> _Descriptions:
        """The current descriptions, or with `searched` those in the state that a search has just seen."""
        records = self._records.read_searched() if searched else self._records()
        return self._loaded.get(records, lambda: self._read({key: each.chunk_count for key, each in records.items()}))

    def _read(self, counts: Mapping[str, int]) -> _Descriptions:
        figures: dict[str, tuple[PaperFigure, ...]] = {}
        tables: dict[str, list[Span]] = defaultdict(list)
        for key, of_paper in self._catalog.figures_by_paper():
            tables[key] += [figure.table_chunks for figure in of_paper if figure.table_chunks]
            for figure in of_paper:
                index = figure.described_chunk
                if figure.description and figure.vector and index is not None and index < counts.get(key, 0):
                    name = chunk_id(key, index)
                    figures[name] = (*figures.get(name, ()), figure)
        pairs = [(name, figure) for name, of_chunk in sorted(figures.items()) for figure in of_chunk]
        decoded = [(name, figure, decode_vector(figure.vector)) for name, figure in pairs]
        size = max((len(vector) for _, _, vector in decoded), default=0)
        if not size:
            return _Descriptions(tables=tables)
        names, kept, vectors = zip(*(each for each in decoded if len(each[2]) == size), strict=True)
        terms = tuple(Counter(analyze(figure.description)) for figure in kept)
        mean_length = max(1.0, sum(words.total() for words in terms) / len(terms))
        return _Descriptions(names, figures, np.stack(vectors), terms, mean_length, tables)


def _keep_highest(scored: Iterable[tuple[str, float]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for name, score in scored:
        best[name] = max(score, best.get(name, score))
    return best
