"""BM25 as inner products of sparse vectors: Milvus multiplies and adds, the parts are calculated here.

A chunk's vector holds for each term the part of BM25 that depends on the chunk; a query's vector holds the idf of each
term. So a score depends neither on how Milvus divides its rows into segments nor on rows that it has yet to delete.
Section titles use separate dimensions, so that one search scores both fields.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ...documents import Chunk, text_hash
from ..paper_change import Change
from ..text_analysis import K1, SECTION_WEIGHT, B, analyze
from .milvus_rows import CHUNKS, PAPERS, MilvusRows, Sparse, index_chunk, index_texts

FIELDS = TEXT, SECTION = 0, 1
_FIELD_WEIGHTS: Final = {TEXT: 1.0, SECTION: SECTION_WEIGHT}
_DIMENSIONS: Final = 2**32 - 2  # the last one below Milvus's limit is for chunks without a term
_NO_TERM: Final = {_DIMENSIONS: 1.0}


@dataclass(frozen=True, slots=True)
class FieldSum:
    """The number of chunks in a library, and the total number of terms in one field."""

    chunks: int = 0
    terms: int = 0

    @property
    def mean(self) -> float:
        """The mean number of terms, at least 1."""
        return max(1.0, self.terms / max(1, self.chunks))


@lru_cache(maxsize=200_000)
def dimension(term: str, field: int) -> int:
    """The dimension of a term in a field; a few in a million collide."""
    return zlib.crc32(f"{field}{term}".encode()) % _DIMENSIONS


def field_texts(chunk: Chunk) -> dict[int, str]:
    """The texts of a chunk that are searched, by field."""
    return {TEXT: chunk.text, SECTION: f"{chunk.parent} {chunk.section}"}


def chunk_vector(terms: Mapping[int, Counter[str]], means: Mapping[int, float]) -> Sparse:
    """The weights of a chunk's terms, by field; `means` are the usual lengths of the fields."""
    vector: Sparse = {}
    for field, counts in terms.items():
        length = K1 * (1 - B + B * counts.total() / means[field])
        vector |= {dimension(term, field): (1 + K1) * count / (count + length) for term, count in counts.items()}
    return vector or dict(_NO_TERM)


def query_vector(counts: Mapping[tuple[str, int], int], sums: Mapping[int, FieldSum]) -> Sparse:
    """The idf of each term and field, from the number of chunks that have it."""
    vector: Sparse = {}
    for (term, field), count in sorted(counts.items()):
        total = sums[field].chunks
        idf = math.log(1 + (max(0, total - count) + 0.5) / (count + 0.5))
        place = dimension(term, field)
        vector[place] = vector.get(place, 0.0) + _FIELD_WEIGHTS[field] * idf
    return vector


class WordCounts:
    """The words of papers: how many chunks have each term, and how many terms there are."""

    def __init__(self) -> None:
        self._papers: dict[str, dict[int, tuple[Counter[str], FieldSum]]] = {}

    def add(self, key: str, terms: Mapping[int, Counter[str]]) -> None:
        """Count a chunk of a paper, with how often it has each term, by field."""
        paper = self._papers.setdefault(key, {})
        for field, found in terms.items():
            counts, total = paper.get(field) or (Counter(), FieldSum())
            counts.update(found.keys())
            paper[field] = counts, FieldSum(total.chunks + 1, total.terms + found.total())

    def of(self, keys: Iterable[str]) -> WordCounts:
        part = WordCounts()
        part._papers = {key: self._papers[key] for key in keys if key in self._papers}
        return part

    def chunks_with(self, field: int) -> Counter[str]:
        total: Counter[str] = Counter()
        for paper in self._papers.values():
            if field in paper:
                total.update(paper[field][0])
        return total

    def sums(self) -> dict[int, FieldSum]:
        found = {field: [paper[field][1] for paper in self._papers.values() if field in paper] for field in FIELDS}
        return {
            field: FieldSum(sum(each.chunks for each in sums), sum(each.terms for each in sums))
            for field, sums in found.items()
        }


def write_papers(
    changes: Iterable[Change],
    versions: Mapping[str, int],
    rows: MilvusRows,
    means_of: Callable[[Mapping[int, FieldSum]], Mapping[int, float]],
) -> WordCounts:
    """Write the rows of the papers that changes add, replacing equal ones, and count their words.

    A change without a version is left out; `means_of` gives the mean lengths.
    """
    added = [change for change in changes if change.record is not None and change.key in versions]
    words = WordCounts()
    terms: dict[str, dict[int, Counter[str]]] = {}  # by chunk
    for change in added:
        for chunk in change.chunks:
            terms[chunk.id] = {field: Counter(analyze(text)) for field, text in field_texts(chunk).items()}
            words.add(change.key, terms[chunk.id])
    if not added:
        return words
    means = means_of(words.sums())
    rows.create(len(added[0].summary_vector))
    rows.put(
        CHUNKS,
        [
            index_chunk(versions[change.key], chunk, text_hash(chunk.text), row, chunk_vector(terms[chunk.id], means))
            for change in added
            for chunk, row in zip(change.chunks, change.vectors, strict=True)
        ],
    )
    texts = (index_texts(versions[change.key], change.summary_vector, change.note_vectors) for change in added)
    rows.put(PAPERS, [row for of_paper in texts for row in of_paper])
    return words
