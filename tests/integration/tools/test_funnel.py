"""Papers first, then their chunks: over the sample library with made-up vectors, and over the real papers."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from citeloom.documents import Category, Chunk, chunk_id
from citeloom.models.roles import Candidate
from citeloom.stores.home import Home
from citeloom.stores.library import Library, UnknownPaperError
from citeloom.tools.assembly import PaperContext, assemble_context
from citeloom.tools.funnel import FunnelLimits, funnel, shortlist
from citeloom.tools.routing import Route, route
from citeloom.tools.scope import Scope
from tests.support.nearest import nearest
from tests.support.sample_library import THREE, index_samples
from tests.support.word_embedding import WordEmbedding


class ByVector:
    """A chunk search that remembers what it was asked."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.asked: list[tuple[int, Scope]] = []

    async def __call__(self, query: str, k: int, scope: Scope) -> Sequence[Candidate]:
        self.asked.append((k, scope))
        vector = await self.library.embedding.embed_query(query)
        near = nearest(
            self.library, vector, k, keys=list(scope.papers) or None, categories=list(scope.categories) or None
        )
        return [Candidate(chunk, self.library.paper(chunk.key), max(0.0, score)) for chunk, score in near]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    embedding = WordEmbedding()
    home = Home(tmp_path_factory.mktemp("samples") / ".citeloom")
    index_samples(home.root, embedding)
    library = Library.open(home, embedding)
    yield library
    library.close()


async def test_chunks_come_from_the_shortlisted_papers_only(samples: Library) -> None:
    search = ByVector(samples)
    limits = FunnelLimits(papers=1, chunks=4)
    found = await funnel(samples, search, "temperature scaling and calibration of wearers", limits=limits)
    near = await shortlist(samples, "temperature scaling and calibration of wearers", 1)
    assert [item.paper.key for item in found.papers] == [near[0].paper.key]
    assert {candidate.chunk.key for candidate in found.chunks} == {near[0].paper.key}
    assert len(found.chunks) == 4 and search.asked == [(4, Scope(papers=(near[0].paper.key,)))]


async def test_papers_that_are_named_are_looked_into_instead_each_for_its_share(samples: Library) -> None:
    found = await funnel(
        samples, ByVector(samples), "seeds", Route("survey", THREE[:2]), FunnelLimits(papers=1, chunks=6)
    )
    assert [(item.paper.key, item.score) for item in found.papers] == [(key, None) for key in THREE[:2]]
    assert Counter(candidate.chunk.key for candidate in found.chunks) == dict.fromkeys(THREE[:2], 3)


async def test_asked_sections_come_first_and_the_rest_of_the_paper_fills_up(samples: Library) -> None:
    key = THREE[0]
    methods = {row.id for row in samples.catalog.chunk_rows(keys=[key], categories=[Category.METHOD])}
    asked = Route("one_paper", (key,), (Category.METHOD,))
    found = await funnel(samples, ByVector(samples), "networks", asked, FunnelLimits(chunks=len(methods) + 2))
    ids = [candidate.chunk.id for candidate in found.chunks]
    assert methods and set(ids[: len(methods)]) == methods
    assert found.widened and len(ids) == len(set(ids)) == len(methods) + 2
    enough = await funnel(samples, ByVector(samples), "networks", asked, FunnelLimits(chunks=1))
    assert not enough.widened and {candidate.chunk.id for candidate in enough.chunks} <= methods


async def test_an_unknown_key_is_named_and_an_empty_library_gives_nothing(samples: Library, tmp_path: Path) -> None:
    with pytest.raises(UnknownPaperError, match="nobody2000"):
        await funnel(samples, ByVector(samples), "seeds", Route("one_paper", ("nobody2000",)))
    empty = Library.open(Home(tmp_path / "empty"), WordEmbedding())
    try:
        found = await funnel(empty, ByVector(empty), "seeds")
    finally:
        empty.close()
    assert (found.papers, found.chunks) == ((), ())


async def test_both_tracks_on_the_real_papers(corpus_library: Library) -> None:
    """Track A: the numbers of one paper. Track B: a topic over several."""
    papers = corpus_library.papers()
    question = "What accuracy does Liu et al. (2013) report for the artificial neural network?"
    one = route(question, papers)
    assert one == Route("one_paper", ("liu2013improved",), (Category.EVALUATION,))
    found = await funnel(corpus_library, ByVector(corpus_library), question, one)
    assert {candidate.chunk.key for candidate in found.chunks} == {"liu2013improved"}
    assert found.chunks[0].chunk.category is Category.EVALUATION

    topic = "How are knowledge graphs of diseases and drugs built from the literature?"
    survey = route(topic, papers)
    assert survey.track == "survey" and not survey.papers
    wide = await funnel(corpus_library, ByVector(corpus_library), topic, survey)
    assert {"nicholson2020constructing", "nicholson2022expanding", "himmelstein2017systematic"} <= {
        item.paper.key for item in wide.papers
    }
    assert len(wide.papers) == 8 and len(wide.chunks) == 15
    assert {candidate.chunk.key for candidate in wide.chunks} <= {item.paper.key for item in wide.papers}


def spans(context: PaperContext) -> list[tuple[int, int]]:
    return [(passage.start, passage.end) for passage in context.passages]


def chunks_in(context: PaperContext) -> set[str]:
    return {identifier for passage in context.passages for identifier in passage.chunk_ids}


def whole_text(library: Library, key: str) -> Callable[[int, int], str]:
    """The paper's text as far as its chunks hold it."""
    chunks: list[Chunk] = library.paper_chunks(key)
    text = [" "] * max(chunk.end for chunk in chunks)
    for chunk in chunks:
        text[chunk.start : chunk.end] = chunk.text
    return lambda start, end: "".join(text[start:end])


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("introduction", [0, 500])
def test_no_words_are_shown_twice_and_none_are_lost(corpus_library: Library, window: int, introduction: int) -> None:
    key = "himmelstein2017systematic"
    count = corpus_library.chunk_count(key)
    found = [chunk_id(key, index) for index in (count // 2, 3, 4, 0, count - 1, count // 2 + 2)]
    [context] = assemble_context(corpus_library, found, window=window, introduction_tokens=introduction)
    assert {identifier for passage in context.passages for identifier in passage.found} == set(found)
    for one in found:
        assert {chunk.id for chunk in corpus_library.window(one, window)} <= chunks_in(context)
    if introduction:
        assert {chunk.id for chunk in corpus_library.introduction(key, introduction)} <= chunks_in(context)
    in_order = spans(context)
    assert in_order == sorted(in_order)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(in_order))
    text_of = whole_text(corpus_library, key)
    for passage in context.passages:
        assert passage.text.split() == text_of(passage.start, passage.end).split()


def test_papers_come_in_the_order_of_their_best_chunk(samples: Library) -> None:
    found = [chunk_id(THREE[1], 2), chunk_id(THREE[0], 1), chunk_id(THREE[1], 0), "nobody2000:00000", "no id"]
    contexts = assemble_context(samples, found, window=0, introduction_tokens=0)
    assert [context.paper.key for context in contexts] == [THREE[1], THREE[0]]
    assert chunks_in(contexts[0]) == {found[0], found[2]}
    assert assemble_context(samples, []) == []


def test_the_introduction_is_background(samples: Library) -> None:
    key = THREE[0]
    last = chunk_id(key, samples.chunk_count(key) - 1)
    [context] = assemble_context(samples, [last], window=0)
    background = [passage for passage in context.passages if not passage.found]
    assert background and {passage.category for passage in background} == {Category.INTRODUCTION}
    assert [passage.found for passage in context.passages if passage.found] == [(last,)]
