"""Which statements of the sample papers are brought before the judge."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from citeloom.documents import Category
from citeloom.errors import InputError
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.stores.library import Library
from citeloom.tools import contradiction_candidates
from citeloom.tools.contradiction_candidates import StatementPair, statement_pairs
from citeloom.tools.scope import Scope
from tests.support.sample_library import SAMPLES, index_samples

TOPIC = "do ensembles improve calibration after temperature scaling"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """All ten sample papers; of these, two disagree on what pooling five networks brings."""
    keys = sorted(path.stem for path in SAMPLES.glob("*.md"))
    opened = Library.open(
        index_samples(tmp_path_factory.mktemp("ten") / "home", LocalEmbedding(), keys), LocalEmbedding()
    )
    yield opened
    opened.close()


def pairs_of(library: Library, topic: str = "", scope: Scope | None = None, most: int = 20) -> list[StatementPair]:
    return asyncio.run(statement_pairs(library, topic, scope or Scope(), most))


def said(pair: StatementPair) -> str:
    sides = (pair.first, pair.second)
    return " | ".join(side.chunk.text[side.spans[0][0] : side.spans[-1][1]] for side in sides)


@pytest.mark.parametrize("topic", [TOPIC, ""], ids=["topic", "no topic"])
def test_papers_that_disagree_are_brought_together_on_it(library: Library, topic: str) -> None:
    together = [said(pair) for pair in pairs_of(library, topic)]
    assert any("added almost nothing" in text and "enough for most of the calibration" in text for text in together)


@pytest.mark.parametrize("topic", [TOPIC, ""], ids=["topic", "no topic"])
def test_each_pair_is_of_two_papers_and_asked_about_once(library: Library, topic: str) -> None:
    pairs = pairs_of(library, topic)
    assert len(pairs) == 20
    assert all(pair.first.chunk.key != pair.second.chunk.key for pair in pairs)
    assert len({frozenset((pair.first.chunk.id, pair.second.chunk.id)) for pair in pairs}) == 20
    of_two = Counter(frozenset((pair.first.chunk.key, pair.second.chunk.key)) for pair in pairs)
    assert max(of_two.values()) <= 4
    assert all(side.spans for pair in pairs for side in (pair.first, pair.second))
    assert pairs == pairs_of(library, topic)


def test_what_a_paper_tells_of_others_is_not_its_own_claim(library: Library) -> None:
    told = [side.chunk.category for pair in pairs_of(library, TOPIC, most=100) for side in (pair.first, pair.second)]
    assert told and Category.RELATED_WORK not in told


def test_two_papers_named_may_fill_all_places(library: Library) -> None:
    keys = ("moreau2025machines", "okafor2022ensembles")
    pairs = pairs_of(library, TOPIC, Scope(keys), most=10)
    assert len(pairs) == 10
    assert all({pair.first.chunk.key, pair.second.chunk.key} == set(keys) for pair in pairs)


def test_one_paper_has_no_counterpart(library: Library) -> None:
    assert pairs_of(library, TOPIC, Scope(("moreau2025machines",))) == []
    assert pairs_of(library, "", Scope(("moreau2025machines",))) == []


def test_too_many_papers_want_a_topic(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contradiction_candidates, "_PAPERS", 9)
    with pytest.raises(InputError, match="10 papers") as refused:
        pairs_of(library)
    assert "--topic" in refused.value.help
    assert pairs_of(library, TOPIC)


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("We did not find a difference between the two kinds of network.", True),
        ("Pooling five networks lowers the calibration error by a third.", True),
        ("We did not combine augmentation with ensembles in this study.", False),
        ("How ensembles behave under stronger changes is an open question.", False),
        ("Does pooling five networks lower the calibration error at all?", False),
        ("| Members | Accuracy | Log loss | Calibration error | and more |", False),
        ("It is so.", False),
    ],
)
def test_only_what_says_how_something_is_can_be_a_claim(text: str, claim: bool) -> None:
    assert contradiction_candidates._can_claim(text) is claim
