"""What becomes of scores: how searches are fused, re-ranked and made diverse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from citeloom.tools.retrieval import (
    maximal_marginal_relevance,
    reciprocal_rank_fusion,
    rerank_pool,
    rerank_ranking,
    weighted_fusion,
)

NAMES = st.sampled_from("abcdefghij")
COSINES = st.dictionaries(NAMES, st.floats(-1, 1), min_size=1)
WORDS = st.dictionaries(NAMES, st.floats(0, 50))


def names(ranking: list[tuple[str, float]]) -> list[str]:
    return [name for name, _ in ranking]


def test_words_lift_what_has_them() -> None:
    cosines = {"near": 0.80, "both": 0.79, "words": 0.60}
    assert names(weighted_fusion(cosines, {}, 0.3)) == ["near", "both", "words"]
    assert names(weighted_fusion(cosines, {"both": 9.0, "words": 3.0}, 0.3)) == ["both", "near", "words"]
    assert names(weighted_fusion(cosines, {"words": 9.0}, 2.0)) == ["words", "near", "both"]


def test_the_words_of_a_table_weigh_more_than_those_of_prose() -> None:
    cosines = {"prose": 0.80, "table": 0.76, "far": 0.60}
    words = {"prose": 5.0, "table": 9.0}
    assert names(weighted_fusion(cosines, words, 0.3)) == ["prose", "table", "far"]
    assert names(weighted_fusion(cosines, words, 0.3, {"table"})) == ["table", "prose", "far"]
    assert names(weighted_fusion(cosines, {"prose": 5.0}, 0.3, {"table"})) == ["prose", "table", "far"]


@given(COSINES, WORDS, st.floats(0, 2), st.sets(NAMES))
def test_fused_scores_are_from_0_to_1_and_lose_no_candidate(
    cosines: dict[str, float], words: dict[str, float], weight: float, tables: set[str]
) -> None:
    ranking = weighted_fusion(
        cosines, {name: score for name, score in words.items() if name in cosines}, weight, tables
    )
    assert set(names(ranking)) == set(cosines)
    assert all(-1e-9 <= score <= 1 + 1e-9 for _, score in ranking)
    assert ranking == sorted(ranking, key=lambda item: (-item[1], item[0]))


def test_rank_fusion_prefers_what_both_have() -> None:
    ranking = reciprocal_rank_fusion([[("a", 0.9), ("b", 0.8), ("c", 0.7)], [("d", 12.0), ("b", 11.0)]])
    assert names(ranking) == ["b", "a", "d", "c"]


@pytest.mark.parametrize(("relevance", "wanted"), [(1.0, ["a", "twin", "other"]), (0.5, ["a", "other", "twin"])])
def test_variety_puts_a_twin_last(relevance: float, wanted: list[str]) -> None:
    vectors = {
        "a": np.array([1, 0], np.float32),
        "twin": np.array([1, 0], np.float32),
        "other": np.array([0, 1], np.float32),
        "worst": np.array([0, 1], np.float32),
    }
    ranking = [("a", 0.9), ("twin", 0.85), ("other", 0.7), ("worst", 0.1)]
    assert names(maximal_marginal_relevance(ranking, vectors, 3, relevance)) == wanted


RANKING = [("a", 0.9), ("b", 0.8), ("c", 0.1)]
TEXTS = {name: f"text {name}" for name in "abc"}


class Fixed:
    """Scores by the last letter of a text."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self.scores[text[-1]] for text in texts], dtype=np.float32)


@pytest.mark.parametrize(
    ("part", "order"), [(0.001, "abc"), (0.4, "bac"), (1.0, "cba")], ids=["hardly", "some", "all of it"]
)
def test_the_part_decides(part: float, order: str) -> None:
    found = rerank_ranking(RANKING, TEXTS, "query", part, Fixed(a=0.001, b=0.2, c=0.9))
    assert "".join(name for name, _ in found) == order


def test_small_differences_near_zero_count() -> None:
    found = rerank_ranking(RANKING, TEXTS, "query", 1.0, Fixed(a=0.00001, b=0.001, c=0.9))
    assert dict(found)["b"] > 0.2


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), st.floats(0, 1), min_size=3), st.floats(0.01, 1))
def test_scores_are_from_0_to_1_and_none_is_lost(scores: dict[str, float], part: float) -> None:
    found = rerank_ranking(RANKING, TEXTS, "query", part, Fixed(**scores))
    assert sorted(name for name, _ in found) == ["a", "b", "c"]
    assert all(-1e-9 <= score <= 1 + 1e-9 for _, score in found)
    assert found == sorted(found, key=lambda item: (-item[1], item[0]))


def test_what_has_no_text_is_left_out() -> None:
    assert rerank_ranking(RANKING, {}, "query", 0.5, Fixed()) == []
    assert [name for name, _ in rerank_ranking(RANKING, {"b": "b"}, "query", 0.5, Fixed(b=0.5))] == ["b"]


def test_more_are_read_than_asked_for() -> None:
    assert (rerank_pool(1), rerank_pool(10), rerank_pool(20)) == (20, 20, 40)
