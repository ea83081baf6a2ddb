"""Windows for needs: from several papers, inside of one section each, without words twice and within their limits."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from citeloom.documents import Category
from citeloom.documents.chunking import Window
from citeloom.ingestion.ingest import ingest
from citeloom.roles.protocols import Need
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from citeloom.tools.evidence_search import group_windows
from citeloom.tools.scope import Scope
from citeloom.tools.window_search import WindowLimits, propose_windows
from tests.support.sample_library import THREE, index_samples
from tests.support.word_embedding import WordEmbedding

SCALING = Need("N1", "what temperature scaling does", ("temperature scaling lowers the calibration error of wearers",))
SEEDS = Need("N2", "what ensembles of seeds do", ("ensembles of seeds make different errors",))


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    embedding = WordEmbedding()
    home = FolderHome(tmp_path_factory.mktemp("samples") / ".citeloom")
    index_samples(home.root, embedding)
    library = Library.open(home, embedding)
    yield library
    library.close()


@pytest.fixture(scope="module")
def real_paper(shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """A library of one long real paper."""
    library = Library.open(FolderHome(tmp_path_factory.mktemp("one") / ".citeloom"), WordEmbedding())
    asyncio.run(ingest(library, [shared_dir / "corpus" / "papers" / "himmelstein2017systematic.md"]))
    yield library
    library.close()


def members(windows: list[Window]) -> list[str]:
    return [chunk.id for window in windows for chunk in window.chunks]


async def test_a_window_is_a_contiguous_part_of_one_section_and_shares_no_chunk(real_paper: Library) -> None:
    windows = await propose_windows(real_paper, [Need("N1", "x", ("hetnet edges and drug repurposing",))])
    assert len(windows) > 3 and any(len(window.chunks) > 1 for window in windows)
    assert len(members(windows)) == len(set(members(windows)))
    for window in windows:
        assert len({(chunk.section, chunk.parent) for chunk in window.chunks}) == 1
        indexes = [chunk.index for chunk in window.chunks]
        assert indexes == list(range(indexes[0], indexes[-1] + 1))
        assert set(window.hits) <= {chunk.id for chunk in window.chunks}


async def test_each_sentence_is_shown_once_and_is_an_exact_slice_of_its_chunk(real_paper: Library) -> None:
    for window in await propose_windows(real_paper, [Need("N1", "x", ("hetnet edges and drug repurposing",))]):
        sentences = window.sentences()
        places = [(item.chunk.start + item.start, item.chunk.start + item.end) for item in sentences]
        assert all(left[1] <= right[0] for left, right in itertools.pairwise(places))
        for item in sentences:
            assert 0 <= item.start < item.end <= len(item.chunk.text) and item.text


async def test_each_window_respects_its_size_and_all_together_the_budget(real_paper: Library) -> None:
    need = Need("N1", "x", ("hetnet edges and drug repurposing",))
    for size in (400, 800, 1600):
        windows = await propose_windows(real_paper, [need], limits=WindowLimits(tokens=4_000, window_tokens=size))
        assert all(window.tokens <= size + 50 or len(window.chunks) == 1 for window in windows)
        assert sum(window.tokens for window in windows[:-1]) < 4_000
    assert len(members(await propose_windows(real_paper, [need], limits=WindowLimits(window_tokens=1, hits=5)))) == 5


async def test_every_need_gets_its_share_of_windows(samples: Library) -> None:
    windows = await propose_windows(samples, [SCALING, SEEDS], limits=WindowLimits(tokens=800, window_tokens=300))
    assert {"N1", "N2"} == {need for window in windows[:2] for need in window.needs}


async def test_no_paper_exceeds_its_share_unless_it_is_the_only_one_asked_for(samples: Library) -> None:
    limits = WindowLimits(tokens=3_000, window_tokens=300, paper_share=0.2)
    of_paper: Counter[str] = Counter()
    for window in await propose_windows(samples, [SCALING, SEEDS], limits=limits):
        of_paper[window.paper.key] += window.tokens
    assert len(of_paper) >= 3 and max(of_paper.values()) <= 600 + 300
    alone = await propose_windows(samples, [SCALING], Scope((THREE[0],)), limits)
    assert sum(window.tokens for window in alone) > 900


async def test_every_named_paper_is_read(samples: Library) -> None:
    windows = await propose_windows(samples, [SCALING], Scope(THREE[:2]), WindowLimits(tokens=1_200, window_tokens=300))
    assert {window.paper.key for window in windows} == set(THREE[:2])


async def test_preferred_kinds_of_section_come_first_without_excluding_others(samples: Library) -> None:
    scope = Scope((THREE[0],), (Category.METHOD,))
    windows = await propose_windows(samples, [SCALING], scope, WindowLimits(tokens=9_000, window_tokens=200))
    assert windows[0].chunks[0].category is Category.METHOD
    assert {chunk.category for window in windows for chunk in window.chunks} > {Category.METHOD}


async def test_windows_already_read_are_not_proposed_again(samples: Library) -> None:
    first = await propose_windows(samples, [SCALING], limits=WindowLimits(tokens=1_500))
    again = await propose_windows(samples, [SCALING], limits=WindowLimits(tokens=1_500), known=members(first))
    assert again and not set(members(first)) & set(members(again))


async def test_the_score_is_the_cosine_to_the_query(samples: Library) -> None:
    windows = await propose_windows(samples, [SCALING], asked="sensor position")
    vector = await samples.embedding.embed_query("sensor position")
    exact = samples.cosines(vector, [window.hits[0] for window in windows])
    assert all(window.cosines[0] == pytest.approx(max(0.0, exact[window.hits[0]])) for window in windows)


async def test_an_empty_library_gives_nothing(tmp_path: Path) -> None:
    empty = Library.open(FolderHome(tmp_path / "empty"), WordEmbedding())
    try:
        assert await propose_windows(empty, [SCALING]) == []
    finally:
        empty.close()


async def test_a_call_groups_windows_within_its_size_and_keeps_papers_together(samples: Library) -> None:
    windows = await propose_windows(samples, [SCALING, SEEDS], limits=WindowLimits(tokens=6_000, window_tokens=300))
    groups = group_windows(windows, 700)
    assert sorted(members([window for group in groups for window in group])) == sorted(members(windows))
    assert len(groups) < len(windows)
    for group in groups:
        assert len(group) == 1 or sum(window.tokens for window in group) <= 700
        places = [(window.paper.key, window.chunks[0].index) for window in group]
        assert places == sorted(places)
    sizes = Counter(
        {key: sum(w.tokens for w in windows if w.paper.key == key) for key in {w.paper.key for w in windows}}
    )
    for key, size in sizes.items():
        assert size > 700 or sum(any(w.paper.key == key for w in group) for group in groups) == 1


async def test_a_paper_named_for_a_need_is_read_for_it_even_if_it_is_far_away(samples: Library) -> None:
    need = Need("N1", SCALING.text, SCALING.queries)
    near = await propose_windows(samples, [need], limits=WindowLimits(tokens=400, paper_margin=0.05))
    far = next(paper.key for paper in samples.papers() if paper.key not in {window.paper.key for window in near})
    windows = await propose_windows(
        samples, [need], limits=WindowLimits(tokens=1200, paper_margin=0.05), candidates={"N1": [far]}
    )
    assert far in {window.paper.key for window in windows}
