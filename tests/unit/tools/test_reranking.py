"""What part a cross-encoder has in an order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from citeloom.tools.reranking import pool_of, reranked

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
    found = reranked(RANKING, TEXTS, "query", part, Fixed(a=0.001, b=0.2, c=0.9))
    assert "".join(name for name, _ in found) == order


def test_small_differences_near_zero_count() -> None:
    found = reranked(RANKING, TEXTS, "query", 1.0, Fixed(a=0.00001, b=0.001, c=0.9))
    assert dict(found)["b"] > 0.2


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), st.floats(0, 1), min_size=3), st.floats(0.01, 1))
def test_scores_are_from_0_to_1_and_none_is_lost(scores: dict[str, float], part: float) -> None:
    found = reranked(RANKING, TEXTS, "query", part, Fixed(**scores))
    assert sorted(name for name, _ in found) == ["a", "b", "c"]
    assert all(-1e-9 <= score <= 1 + 1e-9 for _, score in found)
    assert found == sorted(found, key=lambda item: (-item[1], item[0]))


def test_what_has_no_text_is_left_out() -> None:
    assert reranked(RANKING, {}, "query", 0.5, Fixed()) == []
    assert [name for name, _ in reranked(RANKING, {"b": "b"}, "query", 0.5, Fixed(b=0.5))] == ["b"]


def test_more_are_read_than_asked_for() -> None:
    assert (pool_of(1), pool_of(10), pool_of(20)) == (20, 20, 40)
