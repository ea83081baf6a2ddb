"""What Milvus stores of papers, made from a change that is being applied or from what PostgreSQL holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...documents import Chunk, chunk_id, text_hash
from ...models.embeddings.protocol import Vector
from ..paper_change import Change, PaperRecord
from ..postgres.postgres_vectors import PostgresVectors
from ..text_analysis import analyze
from .milvus_rows import MilvusRows
from .row_records import IndexedChunk, IndexedText, fingerprint
from .word_weights import FieldSum, WordCounts, chunk_vector, fields_of


@dataclass(frozen=True, slots=True)
class IndexedPaper:
    """A version of a paper with all that is searched: chunks with their text hashes and vectors, summary, notes."""

    key: str
    version: int
    chunks: Sequence[tuple[Chunk, str, Vector]]
    summary: Vector
    notes: Sequence[Vector]


def changed_papers(changes: Iterable[Change], versions: Mapping[str, int]) -> list[IndexedPaper]:
    """The papers that changes add."""
    return [
        IndexedPaper(
            change.key,
            versions[change.key],
            [(chunk, text_hash(chunk.text), row) for chunk, row in zip(change.chunks, change.vectors, strict=True)],
            change.summary_vector,
            list(change.note_vectors),
        )
        for change in changes
        if change.record is not None and change.key in versions
    ]


def stored_papers(
    keys: Iterable[str], records: Mapping[str, PaperRecord], versions: Mapping[str, int], vectors: PostgresVectors
) -> list[IndexedPaper]:
    """Papers as PostgreSQL holds them; parts that it lacks are left out."""
    summaries = vectors.summary_vectors(list(keys))
    return [
        IndexedPaper(
            key, versions[key], _chunks_of(key, records[key], vectors), summary, _notes_of(key, records[key], vectors)
        )
        for key, summary in sorted(summaries.items())
    ]


def _chunks_of(key: str, record: PaperRecord, vectors: PostgresVectors) -> list[tuple[Chunk, str, Vector]]:
    stored = vectors.get_chunks([chunk_id(key, index) for index in range(record.chunk_count)], vectors=True)
    return [(each.chunk, each.text_hash, each.vector) for _, each in sorted(stored.items()) if each.vector is not None]


def _notes_of(key: str, record: PaperRecord, vectors: PostgresVectors) -> list[Vector]:
    places = range(len(record.note.spans)) if record.note else ()
    return [row for _, row in sorted(vectors.note_vectors([chunk_id(key, place) for place in places]).items())]


def write_papers(
    papers: Sequence[IndexedPaper],
    rows: MilvusRows,
    means_of: Callable[[Mapping[int, FieldSum]], Mapping[int, float]],
) -> WordCounts:
    """Write the rows of papers, replacing equal ones, and count their words; `means_of` gives the usual lengths."""
    words = WordCounts()
    analyzed = [
        [{field: Counter(analyze(text)) for field, text in fields_of(chunk).items()} for chunk, _, _ in paper.chunks]
        for paper in papers
    ]
    for paper, terms in zip(papers, analyzed, strict=True):
        for each in terms:
            words.add(paper.key, each)
    if not papers:
        return words
    means = means_of(words.sums())
    rows.create(len(papers[0].summary))
    rows.put_chunks(
        [
            IndexedChunk(
                paper.version, chunk.index, int(chunk.category), fingerprint(name), row, chunk_vector(each, means)
            )
            for paper, terms in zip(papers, analyzed, strict=True)
            for (chunk, name, row), each in zip(paper.chunks, terms, strict=True)
        ]
    )
    rows.put_papers(
        [
            IndexedText(paper.version, passage, row)
            for paper in papers
            for passage, row in [(None, paper.summary), *enumerate(paper.notes)]
        ]
    )
    return words
