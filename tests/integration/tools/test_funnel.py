"""Papers first, then their chunks, over the sample library with made-up vectors; chunks back in their paper."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from citeloom.documents import Category, Chunk, chunk_id
from citeloom.stores.home import Home
from citeloom.stores.ingest import ingest
from citeloom.stores.library import Library, UnknownPaperError
from citeloom.tools.assembly import PaperContext, assemble_context
from citeloom.tools.funnel import FunnelLimits, funnel, shortlist
from citeloom.tools.routing import Route
from citeloom.tools.scope import Scope
from tests.support.nearest import ByVector
from tests.support.sample_library import THREE, index_samples
from tests.support.word_embedding import WordEmbedding


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    embedding = WordEmbedding()
    home = Home(tmp_path_factory.mktemp("samples") / ".citeloom")
    index_samples(home.root, embedding)
    library = Library.open(home, embedding)
    yield library
    library.close()


@pytest.fixture(scope="module")
def real_paper(shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """A library of one long real paper."""
    library = Library.open(Home(tmp_path_factory.mktemp("one") / ".citeloom"), WordEmbedding())
    asyncio.run(ingest(library, [shared_dir / "corpus" / "papers" / "himmelstein2017systematic.md"]))
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
def test_no_words_are_shown_twice_and_none_are_lost(real_paper: Library, window: int, introduction: int) -> None:
    [key] = real_paper.records()
    count = real_paper.chunk_count(key)
    found = [chunk_id(key, index) for index in (count // 2, 3, 4, 0, count - 1, count // 2 + 2)]
    [context] = assemble_context(real_paper, found, window=window, introduction_tokens=introduction)
    assert {identifier for passage in context.passages for identifier in passage.found} == set(found)
    for one in found:
        assert {chunk.id for chunk in real_paper.window(one, window)} <= chunks_in(context)
    if introduction:
        assert {chunk.id for chunk in real_paper.introduction(key, introduction)} <= chunks_in(context)
    in_order = spans(context)
    assert in_order == sorted(in_order)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(in_order))
    text_of = whole_text(real_paper, key)
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
