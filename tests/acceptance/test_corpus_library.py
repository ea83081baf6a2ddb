"""The 57 real papers with the bundled model: the library is complete, and questions find their papers."""

from __future__ import annotations

import asyncio

import pytest

from citeloom.documents import Category
from citeloom.documents.bibliography import parse_bibliography
from citeloom.ingestion.doctor import examine
from citeloom.roles.protocols import Need
from citeloom.stores.library import Library
from citeloom.tools.question_routing import Route, route
from citeloom.tools.scope import Scope
from citeloom.tools.window_search import propose_windows
from tests.support.nearest import nearest


def test_the_library_is_complete(corpus_library: Library) -> None:
    papers = corpus_library.papers()
    assert len(papers) == 57
    assert [finding for finding in examine(corpus_library) if finding.level == "problem"] == []
    assert 2500 < corpus_library.chunk_count() < 4000
    sizes = [chunk.tokens for paper in papers for chunk in corpus_library.paper_chunks(paper.key)]
    assert sum(size > 500 for size in sizes) < 0.02 * len(sizes)
    assert max(sizes) <= 800
    for paper in papers:
        assert paper.year and paper.authors and paper.title
        assert list(parse_bibliography(paper.bibtex, source="entry").papers) == [paper.key]
        assert corpus_library.summary(paper.key)
        assert corpus_library.introduction(paper.key)


@pytest.mark.parametrize(
    ("question", "key"),
    [
        ("estimating divergence times with a relaxed molecular clock", "drummond2006relaxed"),
        ("tractography with an ensemble of parameters in diffusion MRI", "takemura2016ensemble"),
        ("why most published research findings are false", "ioannidis2005published"),
        ("estimating glomerular filtration rate with a neural network", "liu2013improved"),
        ("prioritizing drugs for repurposing with a heterogeneous network", "himmelstein2017systematic"),
        ("statistical power of cluster randomized trials when clusters vary in size", "lauer2015effect"),
    ],
)
def test_a_question_finds_its_paper(corpus_library: Library, question: str, key: str) -> None:
    vector = asyncio.run(corpus_library.embedding.embed_query(question))
    near = nearest(corpus_library, vector, 5)
    assert near[0][0].key == key
    assert key in {near.paper.key for near in corpus_library.nearest_papers(vector, 2)}
    exact = nearest(
        corpus_library, vector, 5, keys=[paper.key for paper in corpus_library.papers()], years=(1900, 2100)
    )
    assert [chunk.id for chunk, _ in exact] == [chunk.id for chunk, _ in near]


async def test_questions_on_real_papers_are_routed_to_one_paper_or_a_survey(corpus_library: Library) -> None:
    """Track A: the numbers of one paper. Track B: a topic over several."""
    papers = corpus_library.papers()
    question = "What accuracy does Liu et al. (2013) report for the artificial neural network?"
    one = route(question, papers)
    assert one == Route("one_paper", ("liu2013improved",), (Category.EVALUATION,))
    found = await propose_windows(
        corpus_library, [Need("N1", question, (question,))], Scope(one.papers, one.categories)
    )
    assert {window.paper.key for window in found} == {"liu2013improved"}
    assert found[0].chunks[0].category is Category.EVALUATION

    topic = "How are knowledge graphs of diseases and drugs built from the literature?"
    survey = route(topic, papers)
    assert survey.track == "survey" and not survey.papers
    wide = await propose_windows(corpus_library, [Need("N1", topic, (topic,))], Scope(survey.papers, survey.categories))
    assert {"nicholson2020constructing", "nicholson2022expanding", "himmelstein2017systematic"} <= {
        window.paper.key for window in wide
    }
