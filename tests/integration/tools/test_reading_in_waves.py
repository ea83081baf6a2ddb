"""Reading in waves: nothing more is read for needs that have plenty or yield nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from citeloom.documents.chunking import Window
from citeloom.roles.protocols import Need, PassageFinding, Purpose
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from citeloom.tools.evidence_search import read_in_waves
from citeloom.tools.found_evidence import EvidenceLimits
from citeloom.tools.window_search import WindowLimits, propose_windows
from tests.support.sample_library import index_samples
from tests.support.word_embedding import WordEmbedding

SCALING = Need("N1", "what temperature scaling does", ("temperature scaling lowers the calibration error of wearers",))
SEEDS = Need("N2", "what ensembles of seeds do", ("ensembles of seeds make different errors",))
PURPOSE = Purpose("how to calibrate", (SCALING, SEEDS))
LIMITS = EvidenceLimits(call_tokens=400, waves=4)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    embedding = WordEmbedding()
    home = FolderHome(tmp_path_factory.mktemp("samples") / ".citeloom")
    index_samples(home.root, embedding)
    library = Library.open(home, embedding)
    yield library
    library.close()


@pytest.fixture
async def windows(samples: Library) -> list[Window]:
    return await propose_windows(samples, [SCALING, SEEDS], limits=WindowLimits(tokens=20_000, window_tokens=300))


class Reader:
    """Finds one thing in the first chunk of each window, with the score of the first need that it serves."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores
        self.read_for: list[tuple[str, ...]] = []

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        found = []
        for window in windows:
            self.read_for.append(window.needs)
            need, chunk = window.needs[0], window.chunks[0]
            span = (chunk, 0, len(chunk.text))
            found.append(PassageFinding(window.paper, "It is so.", self.scores[need], need, (span,), 0.7))
        return found


async def test_everything_is_read_until_needs_have_plenty_of_evidence(windows: list[Window]) -> None:
    reader = Reader(N1=0.7, N2=0.7)
    searched = await read_in_waves(reader, PURPOSE, windows[:8], LIMITS)
    assert len(reader.read_for) == 8 and len(searched.found) == 8


async def test_reading_stops_for_a_need_that_has_plenty(windows: list[Window]) -> None:
    scaling = [replace(window, needs=("N1",)) for window in windows[:-2]]
    seeds = [replace(window, needs=("N2",)) for window in windows[-2:]]
    reader = Reader(N1=0.9, N2=0.9)
    await read_in_waves(reader, PURPOSE, [*scaling, *seeds], LIMITS)
    assert 15 <= reader.read_for.count(("N1",)) < len(scaling) and reader.read_for.count(("N2",)) == 2


async def test_a_paper_that_meets_a_need_well_is_not_read_for_it_again(windows: list[Window]) -> None:
    many = [replace(window, needs=("N1",)) for window in windows]
    reader, limits = Reader(N1=0.7, N2=0.7), replace(LIMITS, plenty=1_000, dry=1_000, waves=2)
    searched = await read_in_waves(reader, PURPOSE, many, replace(limits, of_paper=2))
    first = {window.paper.key for window in many[: -(-len(many) // 2)]}
    per_paper = Counter(item.finding.paper.key for item in searched.found)
    assert len(reader.read_for) < len(many) and first <= per_paper.keys() and max(per_paper.values()) >= 2
    everything = Reader(N1=0.7, N2=0.7)
    await read_in_waves(everything, PURPOSE, many, limits)
    assert len(everything.read_for) == len(many)


async def test_reading_stops_for_a_need_that_yields_nothing_more(windows: list[Window]) -> None:
    reader = Reader(N1=0.4, N2=0.4)
    await read_in_waves(reader, PURPOSE, windows, LIMITS)
    assert len(reader.read_for) < len(windows)


async def test_no_useful_passage_is_dropped_after_reading(windows: list[Window]) -> None:
    searched = await read_in_waves(Reader(N1=0.5, N2=0.8), PURPOSE, windows[:8], LIMITS)
    assert {item.finding.score for item in searched.found} <= {0.5, 0.8} and len(searched.found) == 8
    assert [item.combined_score for item in searched.found] == sorted(
        (item.combined_score for item in searched.found), reverse=True
    )


async def test_without_a_chat_model_only_the_best_quotes_per_need_and_paper_are_kept(windows: list[Window]) -> None:
    limits = EvidenceLimits(call_tokens=400, waves=1, top_k_final=3, per_paper=1)
    searched = await read_in_waves(Reader(N1=0.5, N2=0.8), PURPOSE, windows, limits)
    for need in ("N1", "N2"):
        papers = [item.finding.paper.key for item in searched.found if item.finding.need == need]
        assert len(papers) == len(set(papers)) <= 3
