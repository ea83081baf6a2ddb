"""Which sentence represents a passage, and how passages are ordered, without a chat model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from citeloom.documents import Category, Chunk, Paper
from citeloom.documents.chunking import Window
from citeloom.models.embeddings.bundled_models import Reranker
from citeloom.roles.extractive.passage_scores import PassageScores, topic_of
from citeloom.roles.protocols import Need, Purpose
from citeloom.roles.run_roles import QuestionReader
from tests.support.word_embedding import WordEmbedding

QUESTION = "Are smaller studies less likely to yield true findings?"
ANSWER = "Smaller studies in a field are less likely to have findings that turn out to be true"
BESIDE = "Findings of studies in a field are often discussed at the meetings of its societies"
ELSEWHERE = "Soil moisture probes drift by several percent over one season in heavy clay"


class Given(PassageScores):
    """Scores as the test gives them, by the beginning of the text; keeps which sentences were scored."""

    def __init__(self, odds: dict[str, float]) -> None:
        super().__init__(WordEmbedding(), Reranker())
        self.odds, self.scored = odds, list[str]()

    async def passages(self, question: str, texts: Sequence[str], cosines: Sequence[float]) -> Any:
        return np.array([self.odds["passage " + text.split()[0]] for text in texts])

    async def sentences(self, question: str, texts: Sequence[str]) -> Any:
        self.scored += texts
        return np.array([self.odds[text.split()[0]] for text in texts])


def read(scores: Given, *texts: str) -> list[str]:
    purpose = Purpose(QUESTION, (Need("N1", QUESTION, (QUESTION,)),))
    windows = []
    for number, text in enumerate(texts):
        chunk = Chunk(f"a:{number:05}", "a", number, text, "Results", "", Category.OTHER, 1, None, 0, len(text), 20)
        windows.append(Window(Paper("a", "A title", (), 2020), (chunk,), (chunk.id,), (0.5,), ("N1",)))
    found = asyncio.run(QuestionReader(scores).read(purpose, windows))
    return [finding.statement for finding in found]


def test_a_passage_with_the_answer_ranks_before_one_nearer_as_a_whole() -> None:
    scores = Given({"passage Smaller": 2.0, "passage Findings": 3.0, "Smaller": 9.0, "Findings": -4.0})
    assert read(scores, f"{BESIDE}.", f"{ANSWER}.") == [ANSWER, BESIDE]


def test_sentences_of_passages_never_shown_are_not_scored() -> None:
    scores = Given({"passage Soil": -11.0, "passage Smaller": 2.0, "Smaller": 9.0})
    assert read(scores, f"{ELSEWHERE}.", f"{ANSWER}.") == [ANSWER, ELSEWHERE]
    assert scores.scored == [ANSWER]


NODES = "The network contains 47,031 nodes of 11 types and 2,250,197 edges of 24 types"
PAPERS = "The edges were compiled from 10,646 distinct publications by hand"
SHARE = "Of the known edges 30% were recalled for all types"
PLAIN = "Nodes and edges of a network can both have types and properties"


class AllNear(PassageScores):
    """Every text is as near as any other."""

    async def cross_encode(self, query: str, texts: Sequence[str]) -> Any:
        return np.zeros(len(texts))

    async def cosines(self, queries: Sequence[str], texts: Sequence[str]) -> Any:
        return np.zeros((len(texts), len(queries)))


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        ("How many edges does it contain, and of how many types?", NODES, PAPERS),
        ("How many publications were read?", PAPERS, NODES),
        ("What fraction of edges were recalled?", SHARE, PAPERS),
        ("How much of the edges was recalled?", SHARE, PAPERS),
    ],
)
def test_a_question_asking_for_a_number_prefers_sentences_with_one(question: str, first: str, second: str) -> None:
    odds = asyncio.run(AllNear(WordEmbedding(), Reranker()).sentences(question, [PLAIN, second, first]))
    assert odds[0] <= odds[1] < odds[2]


def test_a_sentence_about_the_experiment_ranks_above_one_that_shares_ambiguous_words() -> None:
    need = Need("N1", "A penalty on coefficients selects few genes.", ("A penalty on coefficients selects few genes.",))
    on_it = "The penalty sets coefficients of most genes to zero"
    other = "The referee gave a penalty in the last minute of the match"
    given = [(other, Category.OTHER), (on_it, Category.OTHER)]
    scores = AllNear(WordEmbedding(), Reranker())
    far, near = asyncio.run(scores.statements(need, topic_of([need]), given, crossed=True))
    assert far < near
    (announced,) = asyncio.run(scores.statements(need, topic_of([need]), [("We study the penalty", Category.OTHER)]))
    assert announced < far


def test_a_paper_with_more_sentences_near_the_statements_is_nearer_to_the_subject() -> None:
    papers = [Paper(key, "A title", (), 2020) for key in ("a", "b", "b")]
    of_needs = [np.array([2.0, 1.0, 1.5]), np.array([-9.0, -3.0, 0.0])]
    scores = AllNear(WordEmbedding(), Reranker())
    alone, second, best = asyncio.run(scores.subject("It", papers, of_needs))
    assert alone < second < best
    assert list(asyncio.run(scores.subject("It", [], [np.zeros(0)]))) == []
