"""The extractive roles put together over one embedding model."""

from __future__ import annotations

from typing import Final

from citeloom.models.embedding import EmbeddingModel
from citeloom.models.extractive.answerer import ExtractiveAnswerer
from citeloom.models.extractive.chunk_readings import ChunkwiseReader
from citeloom.models.extractive.judge import ExtractiveJudge
from citeloom.models.extractive.needs import ExtractiveNeeds
from citeloom.models.extractive.planner import ExtractivePlanner
from citeloom.models.extractive.question_planner import QuestionPlanner
from citeloom.models.extractive.question_reader import QuestionReader
from citeloom.models.extractive.reader import ExtractiveReader
from citeloom.models.extractive.relevance import Relevance
from citeloom.models.extractive.rewriting import ExtractiveRewriter
from citeloom.models.extractive.sentence_vectors import SentenceVectors
from citeloom.models.extractive.summarizer import ExtractiveSummarizer
from citeloom.models.extractive.writer import ExtractiveWriter
from citeloom.models.reranker import Reranker
from citeloom.models.roles import Answering, Roles

NOTICE: Final = (
    "Extractive mode: no chat model is configured, so sources are quoted beside your own statements and nothing "
    "is argued; set CITELOOM_CHAT_MODEL for written prose."
)

ANSWER_NOTICE: Final = (
    "Extractive mode: no chat model is configured, so papers are quoted and nothing is summed up; "
    "set CITELOOM_CHAT_MODEL for written prose."
)


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
        answering=Answering(
            ChunkwiseReader(QuestionReader(vectors, relevance), whole=True),
            QuestionPlanner(),
            ExtractiveAnswerer(vectors, relevance),
            ExtractiveRewriter(),
        ),
        notice=NOTICE,
    )
