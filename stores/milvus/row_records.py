"""The rows that Milvus stores, and their ids: the version of a paper, and a place within it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ...models.embeddings.protocol import Vector
from .word_weights import Sparse

_PLACES: Final = 1 << 20  # more than a paper has chunks
VECTOR, WORDS = "vector", "words"
SUMMARY, PASSAGE = 0, 1


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A chunk as it is searched; `fingerprint` stands for its text."""

    version: int
    place: int
    category: int
    fingerprint: int
    vector: Vector
    words: Sparse

    def as_row(self) -> dict[str, Any]:
        """The fields of the collection."""
        head = {"id": row_id(self.version, self.place), "paper": self.version, "category": self.category}
        return {**head, "hash": self.fingerprint, VECTOR: self.vector, WORDS: self.words}


@dataclass(frozen=True, slots=True)
class IndexedText:
    """The summary of a paper, or a passage of its note."""

    version: int
    passage: int | None
    vector: Vector

    def as_row(self) -> dict[str, Any]:
        """The fields of the collection."""
        place = 0 if self.passage is None else 1 + self.passage
        kind = SUMMARY if self.passage is None else PASSAGE
        return {"id": row_id(self.version, place), "paper": self.version, "kind": kind, VECTOR: self.vector}


@dataclass(frozen=True, slots=True)
class Found:
    """A row that a search found."""

    version: int
    place: int
    score: float


def row_id(version: int, place: int) -> int:
    """The id of a row."""
    return version * _PLACES + place


def split_row_id(identifier: int) -> tuple[int, int]:
    """Version and place of a row."""
    return divmod(identifier, _PLACES)


def fingerprint(text_hash: str) -> int:
    """The first 64 bits of a text's hash, as Milvus stores a number."""
    return int.from_bytes(bytes.fromhex(text_hash[:16]), "big", signed=True)
