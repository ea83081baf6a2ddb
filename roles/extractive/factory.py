"""Creates the extractive roles on one embedding model."""

from __future__ import annotations

from ...models.embeddings.protocol import EmbeddingModel
from ...models.embeddings.reranker import Reranker
from ..notices import NOTICE
from ..protocols import AnswerRoles, Roles
from .answerer import ExtractiveAnswerer
from .chunk_readings import ChunkwiseReader
from .judge_and_summarizer import ExtractiveJudge, ExtractiveSummarizer
from .planners import ExtractiveNeeds, ExtractivePlanner, QuestionPlanner
from .readers import ExtractiveReader, QuestionReader
from .relevance import Relevance
from .rewriter import ExtractiveRewriter
from .sentence_vectors import SentenceVectors
from .writer import ExtractiveWriter


def extractive_roles(embedding: EmbeddingModel, *, summary_words: int) -> Roles:
    """The roles; models are loaded on first use."""
    vectors = SentenceVectors(embedding)
    reranker = Reranker()
    relevance = Relevance(embedding, reranker)
    return Roles(
        needs=ExtractiveNeeds(),
        reader=ChunkwiseReader(ExtractiveReader(vectors), whole=False),
        planner=ExtractivePlanner(),
        writer=ExtractiveWriter(vectors),
        judge=ExtractiveJudge(reranker),
        summarizer=ExtractiveSummarizer(summary_words),
        answering=AnswerRoles(
            ChunkwiseReader(QuestionReader(vectors, relevance), whole=True),
            QuestionPlanner(),
            ExtractiveAnswerer(vectors, relevance),
            ExtractiveRewriter(),
        ),
        notice=NOTICE,
    )
