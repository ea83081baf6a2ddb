"""The roles of one run: those without a chat model, which `chat/chat_roles.py` replaces where one is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from ..documents import Chunk, Paper
from ..documents.chunking import Window
from ..models.concurrency import gather_all
from ..models.embeddings.bundled_models import Reranker
from ..models.embeddings.protocol import EmbeddingModel
from ..text.sentences import sentence_spans
from ..text.words import is_latin, one_line
from .extractive.follow_ups import rewrite_question
from .extractive.passage_lists import ExtractiveWriter
from .extractive.passage_scores import (
    CITED,
    EVEN,
    PassageScores,
    QuotablePassage,
    as_score,
    quotable_passages,
    rank_by_words,
    topic_of,
)
from .extractive.statement_needs import is_cited, plan_needs
from .protocols import (
    CitedClaim,
    ClaimJudge,
    EvidenceReader,
    Need,
    NeedsPlanner,
    PaperSummarizer,
    PassageFinding,
    Purpose,
    QuestionRewriter,
    Source,
    SupportJudge,
    Verdict,
    Writer,
)

if TYPE_CHECKING:
    from .chat.chat_cell_reader import ChatCellReader
    from .chat.chat_planners import ChatPlanner
    from .chat.chat_reader import ChatScreener


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one run.

    `planner` searches further, `screener` reads cards, `claims` judges users' texts, `cells` fills evidence tables, and
    `stances` (with the judge's model) tables on claims; these are None without a chat model.
    """

    plan_needs: NeedsPlanner
    reader: EvidenceReader
    answer_reader: EvidenceReader
    writer: Writer
    rewrite: QuestionRewriter
    judge: SupportJudge
    summarize: PaperSummarizer
    planner: ChatPlanner | None = None
    screener: ChatScreener | None = None
    cells: ChatCellReader | None = None
    stances: ChatCellReader | None = None
    claims: ClaimJudge | None = None


def extractive_roles(embedding: EmbeddingModel, *, summary_words: int) -> Roles:
    """Create the roles without a chat model; bundled models are loaded on first use."""
    reranker = Reranker()
    scores = PassageScores(embedding, reranker)
    return Roles(
        plan_needs=plan_needs,
        reader=StatementReader(scores),
        answer_reader=QuestionReader(scores),
        writer=ExtractiveWriter(scores),
        rewrite=rewrite_question,
        judge=ExtractiveJudge(reranker),
        summarize=partial(first_sentences, summary_words),
    )


# Tuned on half of a set of pairs from real papers and tested on the other (docs/benchmarks.md). One true pair in four
# is still judged off-topic, so nothing is dropped or marked because of it.
ON_TOPIC: Final = 0.02


def topic_score(reranker: Reranker, sentence: str, texts: Sequence[str]) -> float:
    """Return how close a sentence is to the closest of the texts, 0-1; blocks."""
    return float(reranker.score(sentence, texts).max())


class ExtractiveJudge:
    """Implements `SupportJudge` on the bundled cross-encoder.

    The cross-encoder cannot tell a claim from its contradiction (it passed 20 of 22 contradicted claims), so only the
    topic is judged, as the verdicts' names say.
    """

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker

    async def judge(self, claims: Sequence[CitedClaim]) -> list[tuple[Verdict, ...]]:
        """Judge each source of each claim separately as `on-topic` or `off-topic`."""

        def compare(sentence: str, source: Source) -> Verdict:
            best = topic_score(self._reranker, sentence, [source.evidence.quote, source.text])
            return Verdict("on-topic" if best >= ON_TOPIC else "off-topic", "only the topics were compared")

        return await asyncio.to_thread(
            lambda: [tuple(compare(claim.sentence, source) for source in claim.sources) for claim in claims]
        )


async def first_sentences(words: int, paper: Paper, text: str) -> str:
    """Return at most `words` words of the abstract, else the text, in whole sentences; always the first sentence."""
    source = paper.abstract or text
    kept: list[str] = []
    count = 0
    for start, end in sentence_spans(source):
        sentence = " ".join(source[start:end].split())
        count += len(sentence.split())
        if kept and count > words:
            break
        kept.append(sentence)
    return " ".join(kept)


_COMPARED: Final = 4  # sentences per chunk, those that share the most words with the need
_UNJUDGED: Final = 0.5  # score of a passage that no local model can judge; only its search rank is known
_BESIDE: Final = 3.0  # log-odds by which a chunk's second sentence may be below the first to be listed too
_FAR: Final = EVEN - 4.0  # log-odds of passages that are never shown, so that their sentences need no scores
_ANSWERS: Final = 0.5  # weight of a sentence's log-odds, added to its passage's
_STATED: Final = (0.0, 2.0)  # even odds of a sentence for a statement, and the slope there


class ChunkReader:
    """Implements `EvidenceReader`: reads each found passage separately."""

    def __init__(self, scores: PassageScores) -> None:
        self._scores = scores

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        """Return the findings in the chunks, best first."""
        read = [
            self._findings(purpose, each, chunk) for each in windows for chunk in each.chunks if chunk.id in each.hits
        ]
        return sorted((item for items in await gather_all(read) for item in items), key=lambda item: -item.score)

    async def _findings(self, purpose: Purpose, window: Window, chunk: Chunk) -> list[PassageFinding]:
        raise NotImplementedError


class StatementReader(ChunkReader):
    """Reads for sections: takes the sentence of each chunk that is nearest to each need."""

    async def _findings(self, purpose: Purpose, window: Window, chunk: Chunk) -> list[PassageFinding]:
        topic, found = topic_of(purpose.needs), list[PassageFinding]()
        for need in purpose.select_needs(window.needs) or purpose.needs[:1]:
            if passages := _sentences_to_compare(need, chunk):
                texts = [(passage.text, chunk.category) for passage in passages]
                odds = await self._scores.statements(need, topic, texts)
                score = as_score(float(odds.max()) + CITED * is_cited(window.paper, need.text), *_STATED)
                found.append(_finding(window, chunk, passages[int(odds.argmax())], score, need))
        return found


class QuestionReader(ChunkReader):
    """Reads for questions: judges a passage by the clause it fits best, then picks its nearest sentence or two."""

    async def _findings(self, purpose: Purpose, window: Window, chunk: Chunk) -> list[PassageFinding]:
        needs = purpose.select_needs(window.needs) or purpose.needs[:1]
        if not is_latin(purpose.text):  # the cross-encoder reads English only
            passages = _sentences_to_compare(needs[0], chunk) if self._scores.multilingual else []
            cosines = await self._scores.cosines([needs[0].text], [passage.text for passage in passages])
            nearest = [passages[int(cosines.argmax())]] if passages else []
            return [_finding(window, chunk, passage, _UNJUDGED, needs[0]) for passage in nearest]
        cosine = [window.cosines[window.hits.index(chunk.id)]]
        odds = [float((await self._scores.passages(need.text, [chunk.text], cosine))[0]) for need in needs]
        best = max(odds)
        need = needs[odds.index(best)]
        passages = _sentences_to_compare(need, chunk)
        if not passages or best <= _FAR:
            return [_finding(window, chunk, passage, as_score(best), need) for passage in passages[:1]]
        said = await self._scores.sentences(need.text, [passage.text for passage in passages])
        order = said.argsort()[::-1][:2]
        return [
            _finding(window, chunk, passages[at], as_score(best + _ANSWERS * max(0.0, float(said[at]))), need)
            for at in order
            if at == order[0] or said[at] >= max(EVEN, said[order[0]] - _BESIDE)
        ]


def _sentences_to_compare(need: Need, chunk: Chunk) -> list[QuotablePassage]:
    """Return the quotable sentences of a chunk that share the most words with a need."""
    passages = quotable_passages(chunk.text)
    return [passages[place] for place in rank_by_words(need.queries, [item.text for item in passages])[:_COMPARED]]


def _finding(window: Window, chunk: Chunk, passage: QuotablePassage, score: float, need: Need) -> PassageFinding:
    spans = ((chunk, passage.start, passage.end),)
    cosine = window.cosines[window.hits.index(chunk.id)]
    return PassageFinding(window.paper, one_line(passage.text), score, need.id, spans, cosine)
