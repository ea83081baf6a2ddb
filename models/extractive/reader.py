"""Reads evidence without a chat model: picks the quotable sentence that lies nearest to the query."""

from __future__ import annotations

from typing import Final

from citeloom.models.extractive.chunk_readings import ChunkReading
from citeloom.models.extractive.quotable import quotable_passages
from citeloom.models.extractive.sentence_vectors import SentenceVectors
from citeloom.models.roles import Candidate

# Where the cosines of bge-small begin and end on sentences of papers: unrelated near 0.45, the same near 0.85.
_LOWEST: Final = 0.45
_RANGE: Final = 0.40


class ExtractiveReader:
    """Implements `ChunkReader`; a chunk without a sentence fit to be quoted is no evidence."""

    def __init__(self, vectors: SentenceVectors) -> None:
        self._vectors = vectors

    async def read(self, query: str, candidate: Candidate) -> ChunkReading | None:
        """The nearest quotable sentence; its summary is the sentence, its score the cosine brought to 0-1."""
        passages = quotable_passages(candidate.chunk.text)
        if not passages:
            return None
        asked = await self._vectors.of_query(query)
        cosines = await self._vectors.of([passage.text for passage in passages]) @ asked
        best = int(cosines.argmax())
        score = min(1.0, max(0.0, (float(cosines[best]) - _LOWEST) / _RANGE))
        passage = passages[best]
        return ChunkReading(" ".join(passage.text.split()), score, passage.start, passage.end)
