"""A change to a paper, with all that the stores need to carry it out, and how it is written down."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np

from citeloom.documents import Category, Chunk, Paper, Section, chunk_id
from citeloom.models.embedding import Vector, Vectors

SummaryKind = Literal["abstract", "extractive", "model"]
_CHUNK_FIELDS = tuple(field.name for field in fields(Chunk))


@dataclass(frozen=True, slots=True)
class PaperRecord:
    """A paper as the catalog holds it; the hashes tell what an ingest has to do."""

    paper: Paper
    metadata_hash: str
    chunking: str
    summary: str
    summary_kind: SummaryKind
    chunk_count: int


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """Where a chunk is and what it is, without its text."""

    key: str
    index: int
    category: Category
    tokens: int
    text_hash: str

    @property
    def id(self) -> str:
        """The chunk's id."""
        return chunk_id(self.key, self.index)


@dataclass(frozen=True, slots=True)
class Change:
    """All that the stores need to take a paper in; `record` None means that it leaves.

    `vectors` are [n, d], one for each chunk, and `summary_vector` [d].
    """

    key: str
    record: PaperRecord | None
    sections: tuple[Section, ...]
    chunks: tuple[Chunk, ...]
    vectors: Vectors
    summary_vector: Vector


def removal(key: str) -> Change:
    """The change that takes a paper out."""
    return Change(key, None, (), (), np.zeros((0, 0), np.float32), np.zeros(0, np.float32))


def as_row(change: Change) -> tuple[str, str, bytes]:
    """The change as key, JSON and the numbers of its vectors."""
    body = {
        "record": asdict(change.record) if change.record else None,
        "sections": [asdict(section) for section in change.sections],
        # One by one: `asdict` copies each value, which takes as long as all else that is done here.
        "chunks": [{name: getattr(chunk, name) for name in _CHUNK_FIELDS} for chunk in change.chunks],
    }
    matrix = np.vstack([change.vectors, change.summary_vector[None, :]]) if change.record else change.vectors
    return change.key, json.dumps(body), np.ascontiguousarray(matrix, dtype="<f4").tobytes()


def from_row(key: str, text: str, numbers: bytes) -> Change:
    """The change that `as_row` wrote down."""
    body = json.loads(text)
    if body["record"] is None:
        return removal(key)
    chunks = tuple(map(_chunk, body["chunks"]))
    sections = tuple(Section(**{**item, "category": Category(item["category"])}) for item in body["sections"])
    matrix = np.frombuffer(numbers, dtype="<f4").astype(np.float32).reshape(len(chunks) + 1, -1)
    record = PaperRecord(**{**body["record"], "paper": paper_of(body["record"]["paper"])})
    return Change(key, record, sections, chunks, matrix[:-1], matrix[-1])


def _chunk(item: dict[str, Any]) -> Chunk:
    """A chunk from its JSON, which knows neither tuples nor categories."""
    breaks = tuple(item.get("page_breaks", ()))
    return Chunk(**{**item, "category": Category(item["category"]), "page_breaks": breaks})


def paper_of(record: dict[str, Any]) -> Paper:
    """A paper from its JSON."""
    return Paper(**{**record, "authors": tuple(record["authors"]), "family_names": tuple(record["family_names"])})
