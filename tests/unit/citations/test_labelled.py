"""The checks against cases that were labelled before the checks were written; `python -m bench checks` tells which.

The floors are what was reached: a change that loses a case has to say why.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.checks import (
    Score,
    score_copied,
    score_fabricated,
    score_instructions,
    score_numbers,
    score_origins,
    score_uncited,
)


@pytest.mark.parametrize(
    ("score", "cases", "precision", "recall"),
    [
        pytest.param(score_numbers, 29, 1.0, 0.96, id="numbers"),
        pytest.param(score_origins, 77, 1.0, 1.0, id="origins of numbers"),
        pytest.param(score_copied, 27, 1.0, 1.0, id="copied runs"),
        pytest.param(score_uncited, 20, 1.0, 1.0, id="citation missing"),
        pytest.param(score_instructions, 41, 1.0, 1.0, id="orders in sources"),
        pytest.param(lambda: score_fabricated("foreign_held_out.tsv"), 38, 0.9, 1.0, id="fabricated citations"),
    ],
)
def test_labelled_cases_are_classified(score: Callable[[], Score], cases: int, precision: float, recall: float) -> None:
    reached = score()
    assert reached.right + len(reached.missed) == cases
    assert reached.precision >= precision, reached.false
    assert reached.recall >= recall, reached.missed
