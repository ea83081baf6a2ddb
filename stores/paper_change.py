"""A change to a paper with everything that the stores need to apply it, and its serialization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Literal, get_args

from ..documents import Category, Chunk, Paper, Section, chunk_id
from ..documents.figures import PaperFigure
from ..documents.notes import Note
from ..models.embeddings.protocol import Vector, Vectors
from ..plurals import counted
from ..table_columns import BLOB, FLAG, TEXT, TypedTable, WrongValueError, choice, dump_json, integer, optional, shaped

SummaryKind = Literal["abstract", "extractive", "model"]
_CHUNK_FIELDS = tuple(item.name for item in fields(Chunk))


def _zeros(*shape: int) -> Vectors:
    import numpy as np

    return np.zeros(shape, np.float32)


@dataclass(frozen=True, slots=True)
class PaperRecord:
    """A paper in the catalog, with the user's note on it; an ingest compares the hashes to see what has changed.

    `figures_version` is the version of the figures that were read from it, empty if they were never read.
    """

    paper: Paper
    metadata_hash: str
    chunking: str
    summary: str
    summary_kind: SummaryKind
    chunk_count: int
    note: Note | None = None
    figures_version: str = ""

    @property
    def passages(self) -> tuple[str, ...]:
        return self.note.passages if self.note else ()

    @property
    def passage_count(self) -> int:
        return len(self.note.spans) if self.note else 0


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
        return chunk_id(self.key, self.index)


@dataclass(frozen=True, slots=True)
class Change:
    """Everything that the stores need to add a paper; `record` None removes it.

    `vectors` are [n, d], one per chunk, `summary_vector` is [d], `note_vectors` are one per passage of the note.
    `images` are the figures' images by hash; a staged change has none, since they are stored immediately.
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


@dataclass(frozen=True, slots=True)
class StagedChange:
    """A change as it is stored, without its vectors."""

    record: PaperRecord | None
    sections: tuple[Section, ...]
    chunks: tuple[Chunk, ...]
    figures: tuple[PaperFigure, ...] = ()


def removal(key: str) -> Change:
    return Change(key, None, (), (), _zeros(0, 0), _zeros(0))


def serialize_change(change: Change) -> tuple[str, str, bytes]:
    """Serialize a change as key, JSON and the bytes of its vectors."""
    import numpy as np

    body = {
        "record": asdict(change.record) if change.record else None,
        "sections": [asdict(section) for section in change.sections],
        # Not `asdict`: it copies every value, which would double the time of this function.
        "chunks": [{name: getattr(chunk, name) for name in _CHUNK_FIELDS} for chunk in change.chunks],
        "figures": [asdict(figure) for figure in change.figures],
    }
    rows = [
        change.vectors,
        change.summary_vector[None, :],
        *([change.note_vectors] if len(change.note_vectors) else []),
    ]
    matrix = np.vstack(rows) if change.record else change.vectors
    return change.key, dump_json(body), np.ascontiguousarray(matrix, dtype="<f4").tobytes()


def deserialize_change(key: str, body: StagedChange, numbers: bytes) -> Change:
    """Deserialize a change that `serialize_change` wrote; raises `WrongValueError` for vectors that do not fit it."""
    import numpy as np

    record = body.record
    if record is None:
        return removal(key)

    count = len(body.chunks)
    try:
        matrix = np.frombuffer(numbers, dtype="<f4").astype(np.float32).reshape(count + 1 + record.passage_count, -1)
    except ValueError:
        message = f"expected vectors for {counted(count, 'chunk')}, not {len(numbers)} bytes"
        raise WrongValueError(f"table staged, column vectors, row key={key!r}: {message}.") from None
    return Change(
        key, record, body.sections, body.chunks, matrix[:count], matrix[count], matrix[count + 1 :], body.figures
    )


def paper_row(change: Change, record: PaperRecord) -> tuple[object, ...]:
    """The columns of a paper that all catalogs have in common, in their order in `PAPERS`."""
    paper = record.paper
    head = (change.key, dump_json(asdict(paper)), paper.content_hash, record.metadata_hash, record.chunking)
    return (*head, record.summary, record.summary_kind, len(change.chunks))


def section_rows(change: Change) -> list[tuple[object, ...]]:
    return [
        (change.key, s.index, s.title, s.parent, s.level, int(s.category), s.start, s.end, s.searchable)
        for s in change.sections
    ]


def chunk_row(chunk: Chunk) -> tuple[object, ...]:
    """The columns of a chunk that all catalogs have in common, with its text."""
    head = (chunk.key, chunk.index, chunk.text, chunk.section, chunk.parent, int(chunk.category), chunk.level)
    return (*head, chunk.page, chunk.start, chunk.end, chunk.tokens)


def build_record(row: Sequence[Any]) -> PaperRecord:
    """The record in a row of a catalog, key first; raises `WrongValueError` if the record is another paper's."""
    key, paper, *rest = row[: 1 + len(fields(PaperRecord))]
    if paper.key != key:
        raise WrongValueError(f"table papers, column key, row key={key!r}: its record is that of {paper.key!r}.")
    return PaperRecord(paper, *rest)


# The columns that a catalog has both in a file and in a database; values are decoded to typed records.
_KEY: Final = {"key": TEXT}
NOTE: Final = shaped("a note", Note)
FIGURE: Final = shaped("a figure", PaperFigure)
FACTS: Final = TypedTable("facts", ("name",), {"name": TEXT, "value": TEXT})
PAPERS: Final = TypedTable(
    "papers",
    ("key",),
    _KEY
    | {
        "state": choice("ready", "indexing"),
        "record": shaped("a paper's record", Paper),
        "metadata_hash": TEXT,
        "chunking": TEXT,
        "summary": TEXT,
        "summary_kind": choice(*get_args(SummaryKind)),
        "chunk_count": integer(),
        "note": optional(replace(NOTE, source="notes.note")),
        "version": replace(TEXT, source="figures.version"),
        "figures_version": TEXT,
    },
)
CATEGORY: Final = choice(*map(int, Category), by=Category)
SECTIONS: Final = TypedTable(
    "sections",
    ("key", "idx"),
    _KEY
    | {"idx": integer(), "title": TEXT, "parent": TEXT, "level": integer(), "category": CATEGORY}
    | {"start": integer(), "stop": integer(), "searchable": FLAG},
)
CHUNKS: Final = TypedTable(
    "chunks",
    ("key", "idx"),
    _KEY | {"idx": integer(), "category": CATEGORY, "tokens": integer(), "text_hash": TEXT},
)
STAGED: Final = TypedTable(
    "staged", ("key",), _KEY | {"change": shaped("a change of a paper", StagedChange), "vectors": BLOB}
)
