"""Creates the extractive roles on one embedding model."""

from __future__ import annotations

from ...models.embeddings.protocol import EmbeddingModel
from ...models.embeddings.reranker import Reranker
from ..notices import NOTICE
from ..protocols import AnswerRoles, Roles
from .judge_and_summarizer import ExtractiveJudge, ExtractiveSummarizer
from .needs import ExtractiveNeeds, NoFurtherSearch
from .readers import QuestionReader, StatementReader
from .relevance import Relevance
from .rewriter import ExtractiveRewriter
from .sentence_vectors import SentenceVectors
from .writer import ExtractiveAnswerer, ExtractiveWriter


def extractive_roles(embedding: EmbeddingModel, *, summary_words: int) -> Roles:
    """The roles; models are loaded on first use."""
    vectors = SentenceVectors(embedding)
    reranker = Reranker()
    relevance = Relevance(embedding, reranker)
    return Roles(
        needs=ExtractiveNeeds(),
        reader=StatementReader(vectors, relevance),
        planner=NoFurtherSearch(),
        writer=ExtractiveWriter(vectors),
        judge=ExtractiveJudge(reranker),
        summarizer=ExtractiveSummarizer(summary_words),
        answering=AnswerRoles(
            QuestionReader(vectors, relevance),
            NoFurtherSearch(),
            ExtractiveAnswerer(vectors),
            ExtractiveRewriter(),
        ),
        notice=NOTICE,
    )
