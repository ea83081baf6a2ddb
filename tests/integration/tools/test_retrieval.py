"""Searching three sample papers with the bundled embedding: by meaning, by words, fused, within scopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from citeloom.documents import Category
from citeloom.documents.chunking import Window
from citeloom.errors import InputError
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.roles.protocols import Need, PassageFinding, Purpose
from citeloom.settings.config import RetrievalMode
from citeloom.stores.library import Library
from citeloom.tools.evidence_search import search_each
from citeloom.tools.found_evidence import EvidenceLimits
from citeloom.tools.paper_search import PAGE_SIZE, keys_with_words, matching_sentence, search_papers
from citeloom.tools.retrieval import Retrieval, retrieve
from citeloom.tools.scope import Scope
from tests.support.sample_library import index_samples

RERANKED = Retrieval(rerank=0.5)
QUERY = "how well do ensembles of networks calibrate their confidence"
PURPOSE = Purpose(QUERY, (Need("N1", QUERY, (QUERY,)),))
ALL = (
    "bjorklund2020stopping haddad2018augmentation lowland2024binning moreau2025machines obrien2019seeds"
    " okafor2022ensembles pellegrini2017soil tanaka2023position varga2021calibration whitcombe2016library"
).split()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    embedding = LocalEmbedding()
    opened = Library.open(index_samples(tmp_path_factory.mktemp("retrieval") / "home", embedding, ALL), embedding)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "how",
    [
        Retrieval(),
        Retrieval("dense"),
        Retrieval("bm25"),
        Retrieval(rerank=0.5),
    ],
    ids=["by score", "dense", "bm25", "re-ranked"],
)
async def test_every_hit_has_its_true_cosine(library: Library, how: Retrieval) -> None:
    hits = await retrieve(library, QUERY, 12, options=how)
    vector = await library.embedding.embed_query(QUERY)
    ids = [hit.chunk.id for hit in hits]
    vectors = library.store.get_vectors(ids)
    true = [float(vectors[name] @ vector) for name in ids]
    assert len(set(ids)) == 12
    assert [hit.vector_score for hit in hits] == pytest.approx(list(np.clip(true, 0, 1)), abs=1e-4)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert "okafor2022ensembles" in {hit.paper.key for hit in hits[:3]}
    assert ids == [hit.chunk.id for hit in await retrieve(library, QUERY, 12, options=how)]


@pytest.mark.parametrize("mode", ["hybrid", "dense", "bm25"])
async def test_the_cross_encoder_gets_the_weight_that_is_set(
    library: Library, mode: RetrievalMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = await retrieve(library, QUERY, 20, options=Retrieval(mode))
    texts = [hit.chunk.text for hit in usual]
    backwards = dict(zip(texts, np.linspace(0.0, 1.0, len(texts)), strict=True))

    class Contrary:
        """Prefers what the search has last; all others are worse still."""

        def score(self, query: str, given: Sequence[str]) -> NDArray[np.float32]:
            assert query == QUERY
            return np.array([backwards.get(text, 0.0) for text in given], dtype=np.float32)

    monkeypatch.setattr("citeloom.tools.retrieval.RERANKER", Contrary())

    async def keys(part: float, k: int = 20) -> list[str]:
        hits = await retrieve(library, QUERY, k, options=Retrieval(mode, rerank=part))
        return [hit.chunk.id for hit in hits]

    ids = [hit.chunk.id for hit in usual]
    assert await keys(0.0) == ids
    assert (await keys(1.0, 10))[:3] == ids[:-4:-1]
    assert sorted(await keys(0.001, 10)) == sorted(ids[:10])


async def test_a_setting_applies_the_cross_encoder_to_a_section(library: Library) -> None:
    read: dict[float, list[str]] = {}
    for part in (0.0, 1.0):
        listener = Listener()
        limits = EvidenceLimits(top_k_initial=3, rerank=part)
        await search_each(library, listener, PURPOSE, [(PURPOSE.needs[0], Scope())], limits)
        read[part] = sorted(listener.given)
    assert read[0.0] != read[1.0]


async def test_a_rare_word_is_found_by_word_search_and_by_hybrid_search(library: Library) -> None:
    places = {
        mode: [
            hit.paper.key for hit in await retrieve(library, "Moran's I of soil moisture", 3, options=Retrieval(mode))
        ]
        for mode in ("bm25", "hybrid")
    }
    assert places["bm25"][0] == places["hybrid"][0] == "pellegrini2017soil"


@pytest.mark.parametrize("mode", ["hybrid", "dense", "bm25"])
async def test_scopes_limit_every_kind_of_search(library: Library, mode: str) -> None:
    how = Retrieval(mode)  # type: ignore[arg-type]

    async def papers(scope: Scope) -> set[str]:
        hits = await retrieve(library, QUERY, 50, scope, how)
        if scope.categories:
            assert {hit.chunk.category for hit in hits} == set(scope.categories)
        return {hit.paper.key for hit in hits}

    assert await papers(Scope(("varga2021calibration",))) == {"varga2021calibration"}
    assert await papers(Scope(years=(2021, 2022))) <= {"varga2021calibration", "okafor2022ensembles"}
    assert await papers(Scope(venue="PROCEEDINGS", years=(2000, 2022))) <= {
        "varga2021calibration",
        "okafor2022ensembles",
    }
    assert await papers(Scope(categories=(Category.METHOD,)))
    assert await papers(Scope(("nobody",))) == set()


class Listener:
    """A reader that keeps the ids of what it is given, and finds nothing in it."""

    def __init__(self) -> None:
        self.given: list[str] = []

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        self.given += [name for window in windows for name in window.hits]
        return []


@pytest.mark.parametrize("mode", ["hybrid", "dense", "bm25"])
async def test_evidence_is_read_from_the_results_of_the_chosen_retrieval(library: Library, mode: str) -> None:
    listener = Listener()
    limits = EvidenceLimits(retrieval_mode=mode, top_k_initial=7, window_tokens=1)  # type: ignore[arg-type]
    (searched,) = await search_each(library, listener, PURPOSE, [(PURPOSE.needs[0], Scope())], limits)
    assert searched.found == () and sorted(searched.read) == sorted(listener.given)
    hits = await retrieve(library, QUERY, 7, options=Retrieval(mode))  # type: ignore[arg-type]
    assert hits[0].chunk.id in listener.given
    others = await retrieve(library, QUERY, 7, options=Retrieval("dense" if mode == "bm25" else "bm25"))
    assert {hit.chunk.id for hit in others} != set(listener.given)


def test_found_papers_are_returned_in_pages(library: Library) -> None:
    first = search_papers(library, "calibration of the network")
    assert {"okafor2022ensembles", "varga2021calibration"} == {hit.paper.key for hit in first.hits[:2]}
    seen = [hit.paper.key for hit in first.hits]
    page = first
    while page.next_page:
        page = search_papers(library, "calibration of the network", page=page.next_page)
        seen += [hit.paper.key for hit in page.hits]
    assert len(seen) == len(set(seen)) == first.total
    assert len(first.hits) == min(PAGE_SIZE, first.total)
    assert search_papers(library, "calibration", page=99).hits == ()


@pytest.mark.parametrize("query", ["wearers error", "samples labels", "labels accuracy"])
def test_papers_with_all_words_rank_before_papers_with_some(library: Library, query: str) -> None:
    whole = keys_with_words(library, [query])
    having = [hit.paper.key in whole for hit in search_papers(library, query).hits]
    assert having == sorted(having, reverse=True) and len(set(having)) == 2


def test_papers_can_be_limited_by_year(library: Library) -> None:
    assert {hit.paper.key for hit in search_papers(library, "network", 2022, 2022).hits} == {"okafor2022ensembles"}
    assert all((hit.paper.year or 0) >= 2023 for hit in search_papers(library, "network", min_year=2023).hits)
    with pytest.raises(InputError, match="in the wrong order"):
        search_papers(library, "network", 2023, 2020)
    with pytest.raises(InputError, match="no page 0"):
        search_papers(library, "network", page=0)


def test_a_title_finds_its_paper(library: Library) -> None:
    for paper in library.papers():
        assert search_papers(library, paper.title).hits[0].paper.key == paper.key


def test_the_matching_sentence_is_the_one_with_the_words(library: Library) -> None:
    text = "Trees are green. Temperature scaling lowers the\ncalibration error. It rains."
    assert matching_sentence(library, text, "calibration error") == "Temperature scaling lowers the calibration error."
    assert matching_sentence(library, text, "zyzzyva") == "Trees are green."
    assert matching_sentence(library, "", "zyzzyva") == ""
    assert matching_sentence(library, "![](a.png)\n\nTrees are green.", "zyzzyva") == "Trees are green."
    said = {"Temperature scaling lowers the calibration error."}
    assert matching_sentence(library, text, "calibration error", said) != next(iter(said))
    assert matching_sentence(library, next(iter(said)), "calibration error", said) == next(iter(said))
