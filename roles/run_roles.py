"""The roles of one run: those that need no chat model, which `chat/chat_roles.py` replaces where one is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from ..documents import Paper
from ..models.embeddings.bundled_models import Reranker
from ..models.embeddings.protocol import EmbeddingModel
from ..text.sentences import sentence_spans
from .extractive.extractive_readers import QuestionReader, StatementReader
from .extractive.follow_ups import rewrite_question
from .extractive.passage_lists import ExtractiveWriter
from .extractive.passage_scores import PassageScores
from .extractive.statement_needs import plan_needs
from .protocols import (
    CitedClaim,
    ClaimJudge,
    EvidenceReader,
    NeedsPlanner,
    PaperSummarizer,
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

    `planner` searches further, `screener` reads cards, `claims` judges users' texts, `cells` fills evidence tables,
    `stances` (the judge's model) those on claims; these are None without a chat model.
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
    """The roles; models are loaded on first use."""
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


# Tuned on one half of pairs of real papers and tested on the other (docs/benchmarks.md). One true pair in four is still
# judged off-topic, so nothing is dropped or marked because of it.
ON_TOPIC: Final = 0.02


def topic_score(reranker: Reranker, sentence: str, texts: Sequence[str]) -> float:
    """How close a sentence is to a quote or to the passage around it, whichever is closer, 0-1; blocks."""
    return float(reranker.score(sentence, texts).max())


class ExtractiveJudge:
    """Implements `SupportJudge` on the bundled cross-encoder.

    The cross-encoder cannot tell a claim from its contradiction (it passed 20 of 22 contradicted ones), so only the
    topic is judged, and the name of the verdict says so.
    """

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker

    async def judge(self, claims: Sequence[CitedClaim]) -> list[tuple[Verdict, ...]]:
        """`on-topic` or `off-topic` for each source of each claim separately."""

        def compare(sentence: str, source: Source) -> Verdict:
            best = topic_score(self._reranker, sentence, [source.evidence.quote, source.text])
            return Verdict("on-topic" if best >= ON_TOPIC else "off-topic", "only the topics were compared")

        return await asyncio.to_thread(
            lambda: [tuple(compare(claim.sentence, source) for source in claim.sources) for claim in claims]
        )


async def first_sentences(words: int, paper: Paper, text: str) -> str:
    """At most `words` words of the abstract or else the text, in whole sentences; the first is always kept."""
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
