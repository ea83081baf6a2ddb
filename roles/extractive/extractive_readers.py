"""Reads windows without a chat model: of each passage found, the sentences nearest to each need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...documents import Chunk
from ...documents.chunking import Window
from ...models.concurrency import gather_all
from ...text.words import one_line
from ..protocols import Need, PassageFinding, Purpose
from .passage_scores import EVEN, PassageScores, as_score, rank_by_words
from .quotable_sentences import QuotablePassage, quotable_passages

_COMPARED: Final = 4  # sentences per chunk: those that share most words with the need
_UNJUDGED: Final = 0.5  # score of a passage that no local model can judge; only its search rank is known
_BESIDE: Final = 3.0  # log-odds that the second sentence of a chunk may be below the first to be listed too
_STATED: Final = (0.0, 2.0)  # even odds of a sentence for a statement, and the slope there


class StatementReader:
    """Implements `EvidenceReader` for sections: the sentence of each chunk that is nearest to each need by words."""

    def __init__(self, scores: PassageScores) -> None:
        self._scores = scores

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        """At most one finding for each chunk and need, best first."""
        found = await gather_all(
            self._finding(purpose, need, window, chunk)
            for window in windows
            for chunk in _hits(window)
            for need in purpose.named(window.needs) or purpose.needs[:1]
        )
        return sorted((item for item in found if item), key=lambda item: -item.score)

    async def _finding(self, purpose: Purpose, need: Need, window: Window, chunk: Chunk) -> PassageFinding | None:
        passages = _compared(need, chunk)
        if not passages:
            return None
        texts = [passage.text for passage in passages]
        odds, _ = await self._scores.statements(need, purpose.text, texts, chunk.category)
        best = int(odds.argmax())
        return _finding(window, chunk, passages[best], as_score(float(odds[best]), *_STATED), need)


class QuestionReader:
    """Implements `EvidenceReader` for questions: judges a whole passage, then picks its sentence nearest to the need.

    A passage is scored by the clause of the question that it fits best.
    """

    def __init__(self, scores: PassageScores) -> None:
        self._scores = scores

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        """One or two findings for each chunk with quotable sentences, best first."""
        found = await gather_all(
            self._findings(purpose, window, chunk) for window in windows for chunk in _hits(window)
        )
        return sorted((item for items in found for item in items), key=lambda item: -item.score)

    async def _findings(self, purpose: Purpose, window: Window, chunk: Chunk) -> list[PassageFinding]:
        needs = purpose.named(window.needs) or purpose.needs[:1]
        cosine = [window.cosine_of(chunk.id)]
        if not self._scores.can_judge(purpose.text):
            passages = _compared(needs[0], chunk) if self._scores.multilingual else []
            cosines = await self._scores.cosines([needs[0].text], [passage.text for passage in passages])
            nearest = [passages[int(cosines.argmax())]] if passages else []
            return [_finding(window, chunk, passage, _UNJUDGED, needs[0]) for passage in nearest]
        odds = [float((await self._scores.passages(need.text, [chunk.text], cosine))[0]) for need in needs]
        need = needs[odds.index(max(odds))]
        passages = _compared(need, chunk)
        if not passages:
            return []
        said = await self._scores.sentences(need.text, [passage.text for passage in passages])
        best, *others = said.argsort()[::-1]
        beside = [place for place in others[:1] if said[place] >= max(EVEN, said[best] - _BESIDE)]
        return [_finding(window, chunk, passages[place], as_score(max(odds)), need) for place in (best, *beside)]


def _hits(window: Window) -> list[Chunk]:
    chunks = {chunk.id: chunk for chunk in window.chunks}
    return [chunks[name] for name in window.hits]


def _compared(need: Need, chunk: Chunk) -> list[QuotablePassage]:
    """The quotable sentences of a chunk that share the most words with a need."""
    passages = quotable_passages(chunk.text)
    return [passages[place] for place in rank_by_words(need.queries, [item.text for item in passages])[:_COMPARED]]


def _finding(window: Window, chunk: Chunk, passage: QuotablePassage, score: float, need: Need) -> PassageFinding:
    spans = ((chunk, passage.start, passage.end),)
    return PassageFinding(window.paper, one_line(passage.text), score, need.id, spans, window.cosine_of(chunk.id))
