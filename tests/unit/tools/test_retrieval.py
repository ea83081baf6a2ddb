"""How searches are fused and re-ranked."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from citeloom.tools.retrieval import (
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


def test_matching_words_raise_a_passage() -> None:
    cosines = {"near": 0.80, "both": 0.79, "words": 0.60}
    assert names(weighted_fusion(cosines, {}, 0.3)) == ["near", "both", "words"]
    assert names(weighted_fusion(cosines, {"both": 9.0, "words": 3.0}, 0.3)) == ["both", "near", "words"]
    assert names(weighted_fusion(cosines, {"words": 9.0}, 2.0)) == ["words", "near", "both"]


def test_words_in_a_table_weigh_more_than_words_in_prose() -> None:
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


def test_rank_fusion_prefers_results_of_both_searches() -> None:
    ranking = reciprocal_rank_fusion([[("a", 0.9), ("b", 0.8), ("c", 0.7)], [("d", 12.0), ("b", 11.0)]])
    assert names(ranking) == ["b", "a", "d", "c"]


RANKING = [("a", 0.9), ("b", 0.8), ("c", 0.1)]


@pytest.mark.parametrize(
    ("part", "order"), [(0.001, "abc"), (0.4, "bac"), (1.0, "cba")], ids=["hardly", "some", "all of it"]
)
def test_the_weight_of_the_reranker_decides_the_order(part: float, order: str) -> None:
    found = rerank_ranking(RANKING, {"a": 0.001, "b": 0.2, "c": 0.9}, part)
    assert "".join(name for name, _ in found) == order


def test_small_reranker_scores_still_matter() -> None:
    found = rerank_ranking(RANKING, {"a": 0.00001, "b": 0.001, "c": 0.9}, 1.0)
    assert dict(found)["b"] > 0.2


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), st.floats(0, 1), min_size=3), st.floats(0.01, 1))
def test_reranked_scores_are_from_0_to_1_and_none_is_lost(scores: dict[str, float], part: float) -> None:
    found = rerank_ranking(RANKING, scores, part)
    assert sorted(name for name, _ in found) == ["a", "b", "c"]
    assert all(-1e-9 <= score <= 1 + 1e-9 for _, score in found)
    assert found == sorted(found, key=lambda item: (-item[1], item[0]))


def test_passages_without_a_reranker_score_are_left_out() -> None:
    assert rerank_ranking(RANKING, {}, 0.5) == []
    assert [name for name, _ in rerank_ranking(RANKING, {"b": 0.5}, 0.5)] == ["b"]


def test_the_reranker_reads_more_passages_than_requested() -> None:
    assert (rerank_pool(1), rerank_pool(10), rerank_pool(20)) == (20, 20, 40)
