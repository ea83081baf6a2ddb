"""A change to a paper with everything that the stores need to apply it, and its serialization."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from ..documents import Category, Chunk, Paper, Section, chunk_id
from ..documents.figures import PaperFigure, figure_records, figures_of
from ..documents.notes import Note
from ..models.embeddings.protocol import Vector, Vectors

SummaryKind = Literal["abstract", "extractive", "model"]
_CHUNK_FIELDS = tuple(item.name for item in fields(Chunk))


def _zeros(*shape: int) -> Vectors:
    import numpy as np

    return np.zeros(shape, np.float32)


@dataclass(frozen=True, slots=True)
class PaperRecord:
    """A paper in the catalog, with the user's note on it; an ingest compares the hashes to see what has changed.

    `figures_version` is that of the figures read from it, empty if they were never read.
    """

    paper: Paper
    metadata_hash: str
    chunking: str
    summary: str
    summary_kind: SummaryKind
    chunk_count: int
    note: Note | None = None
    figures_version: str = ""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk's position and metadata, without its text."""

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
    """Everything that the stores need to add a paper; `record` None removes it.

    `vectors` are [n, d], one per chunk, `summary_vector` is [d], `note_vectors` are one per passage of the note.
    `images` are those of the figures, by hash; a staged change no longer has them, since they are stored at once.
    """

    key: str
    record: PaperRecord | None
    sections: tuple[Section, ...]
    chunks: tuple[Chunk, ...]
    vectors: Vectors
    summary_vector: Vector
    note_vectors: Vectors = field(default_factory=lambda: _zeros(0, 0))
    figures: tuple[PaperFigure, ...] = ()
    images: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def passages(self) -> tuple[str, ...]:
        """The passages of the note, in the order of `note_vectors`."""
        return self.record.note.passages if self.record and self.record.note else ()


def removal(key: str) -> Change:
    """The change that removes a paper."""
    return Change(key, None, (), (), _zeros(0, 0), _zeros(0))


def as_row(change: Change) -> tuple[str, str, bytes]:
    """Serialize a change as key, JSON and the bytes of its vectors."""
    import numpy as np

    body = {
        "record": asdict(change.record) if change.record else None,
        "sections": [asdict(section) for section in change.sections],
        # Not `asdict`: it copies every value, which would double the time of this function.
        "chunks": [{name: getattr(chunk, name) for name in _CHUNK_FIELDS} for chunk in change.chunks],
        "figures": figure_records(change.figures),
    }
    rows = [change.vectors, change.summary_vector[None, :], *([change.note_vectors] if change.passages else [])]
    matrix = np.vstack(rows) if change.record else change.vectors
    return change.key, json.dumps(body), np.ascontiguousarray(matrix, dtype="<f4").tobytes()


def from_row(key: str, text: str, numbers: bytes) -> Change:
    """Deserialize a change that `as_row` wrote."""
    import numpy as np

    body = json.loads(text)
    if body["record"] is None:
        return removal(key)
    chunks = tuple(map(_chunk, body["chunks"]))
    sections = tuple(Section(**{**item, "category": Category(item["category"])}) for item in body["sections"])
    stored = body["record"]
    record = PaperRecord(**{**stored, "paper": paper_of(stored["paper"]), "note": note_of(stored.get("note"))})
    count = len(chunks)
    passages = len(record.note.spans) if record.note else 0
    matrix = np.frombuffer(numbers, dtype="<f4").astype(np.float32).reshape(count + 1 + passages, -1)
    figures = figures_of(body.get("figures", ()))
    return Change(key, record, sections, chunks, matrix[:count], matrix[count], matrix[count + 1 :], figures)


def _chunk(item: dict[str, Any]) -> Chunk:
    """A chunk from its JSON, which has neither tuples nor enum members."""
    breaks = tuple(item.get("page_breaks", ()))
    return Chunk(**{**item, "category": Category(item["category"]), "page_breaks": breaks})


def paper_of(record: dict[str, Any]) -> Paper:
    """A paper from its JSON."""
    lists = ("authors", "family_names", "ocr_pages")  # papers of older versions have no pages read by OCR
    return Paper(**{**record, **{name: tuple(record.get(name, ())) for name in lists}})


def record_of(row: Sequence[Any]) -> PaperRecord:
    """A record from a catalog's row: its fields in order, the paper and the note as JSON."""
    paper, *plain, note, figures_version = row
    return PaperRecord(*(paper_of(json.loads(paper)), *plain, note_of(note), figures_version))


def note_of(value: str | dict[str, Any] | None) -> Note | None:
    """A note from its JSON, parsed or as text."""
    record = json.loads(value) if isinstance(value, str) else value
    return Note(record["text"], tuple((start, end) for start, end in record["spans"])) if record else None
