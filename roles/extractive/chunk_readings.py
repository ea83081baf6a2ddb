"""Reads windows without a chat model: one sentence per chunk, since the small models cannot take in more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...documents.windows import Window
from ...models.concurrency import gather_all
from ..needs import Purpose
from ..protocols import Candidate, PassageFinding


@dataclass(frozen=True, slots=True)
class ChunkReading:
    """A chunk read for a query: `chunk.text[start:end]` is the relevant passage."""

    summary: str
    score: float
    start: int
    end: int


class ChunkReader(Protocol):
    """Reads one chunk for a query."""

    async def read(self, query: str, candidate: Candidate) -> ChunkReading | None:
        """The reading, or None when nothing in the chunk is relevant to the query."""
        ...


class ChunkwiseReader:
    """Implements `EvidenceReader` on a `ChunkReader`: reads the chunks of each window that searches found.

    A question is read for as a whole (`whole`); for a section each chunk is read for the first need it was found for.
    """

    def __init__(self, reader: ChunkReader, *, whole: bool) -> None:
        self._reader = reader
        self._whole = whole

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        """A finding for each chunk with a relevant sentence, best first."""
        hits = [(window, name) for window in windows for name in window.hits]
        found = await gather_all(self._finding(purpose, window, name) for window, name in hits)
        return sorted((item for item in found if item), key=lambda item: -item.score)

    async def _finding(self, purpose: Purpose, window: Window, name: str) -> PassageFinding | None:
        chunk = next(chunk for chunk in window.chunks if chunk.id == name)
        served = purpose.named(window.needs)
        query = purpose.text if self._whole or not served else served[0].text
        cosine = window.cosine_of(name)
        reading = await self._reader.read(query, Candidate(chunk, window.paper, cosine))
        if reading is None:
            return None
        need = served[0].id if served else ""
        spans = ((chunk, reading.start, reading.end),)
        return PassageFinding(window.paper, reading.summary, reading.score, need, spans, cosine)
