"""Reads evidence without a chat model: picks the quotable sentence nearest to the query."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from ..protocols import Candidate
from .answer_kinds import ANSWERS, answers
from .attributable_sentences import attributable_passages, tells_of_doing
from .chunk_readings import ChunkReading
from .quotable_sentences import quotable_passages
from .relevance import Relevance, as_score
from .sentence_vectors import SentenceVectors

# The range of bge-small's cosines on sentences of papers: unrelated near 0.45, the same near 0.85.
_LOWEST: Final = 0.45
_RANGE: Final = 0.40


class ExtractiveReader:
    """Implements `ChunkReader`; a chunk without a quotable sentence gives no evidence."""

    def __init__(self, vectors: SentenceVectors) -> None:
        self._vectors = vectors

    async def read(self, query: str, candidate: Candidate) -> ChunkReading | None:
        """The nearest quotable sentence; its summary is the sentence, its score the cosine scaled to 0-1."""
        passages = quotable_passages(candidate.chunk.text)
        if not passages:
            return None
        asked = await self._vectors.of_query(query)
        cosines = await self._vectors.of([passage.text for passage in passages]) @ asked
        best = int(cosines.argmax())
        score = min(1.0, max(0.0, (float(cosines[best]) - _LOWEST) / _RANGE))
        passage = passages[best]
        return ChunkReading(" ".join(passage.text.split()), score, passage.start, passage.end)


_HOW: Final = re.compile(
    r"\b(?:how (?:did|do|does|is|are|was|were|can|could|should|to)|methods?|procedure|protocol|steps)\b", re.IGNORECASE
)
_DOING_COSTS: Final = 3.0  # log-odds lost by a sentence on what was done, unless the question asks how
_READ_CLOSELY: Final = 4  # sentences of a passage: those nearest to the question
_MORE_CLOSELY: Final = 3  # further ones, with the question's words and the kind of its answer
_UNJUDGED: Final = 0.5  # for a passage that no model here can judge: only the order of the search is known


class QuestionReader:
    """Implements `ChunkReader` for questions; a chunk without a quotable sentence gives no evidence."""

    def __init__(self, vectors: SentenceVectors, relevance: Relevance) -> None:
        self._vectors = vectors
        self._relevance = relevance

    async def read(self, query: str, candidate: Candidate) -> ChunkReading | None:
        """The quotable sentence that answers best; its summary is the sentence, its score that of the chunk."""
        passages = attributable_passages(candidate.chunk.text)
        if not passages:
            return None
        asked = await self._vectors.of_query(query)
        texts = [passage.text for passage in passages]
        cosines = await self._vectors.of(texts) @ asked
        if not self._relevance.can_judge(query):
            if not self._relevance.multilingual:
                return None
            best, score = int(cosines.argmax()), _UNJUDGED
        else:
            whole = await self._relevance.odds(query, [candidate.chunk.text], np.array([candidate.vector_score]))
            order = [int(place) for place in np.argsort(-cosines, kind="stable")]
            met = [place for place in order if answers(query, " ".join(texts[place].split()), candidate.paper)]
            near = list(dict.fromkeys([*order[:_READ_CLOSELY], *met[:_MORE_CLOSELY]]))
            odds = await self._relevance.odds(query, [texts[place] for place in near], cosines[near])
            doing = [_DOING_COSTS * (not _HOW.search(query) and tells_of_doing(texts[place])) for place in near]
            gain = [ANSWERS * (place in met) for place in near]
            best = near[int((odds - np.array(doing) + np.array(gain)).argmax())]
            score = as_score(float(whole[0]) + ANSWERS * (best in met))
        passage = passages[best]
        return ChunkReading(" ".join(passage.text.split()), score, passage.start, passage.end)
