"""Needs planned by a model contain none of the user's own results when they are searched for."""

from __future__ import annotations

import pytest

from citeloom.experiment import Experiment
from citeloom.graph.section_queries import without_own_results
from citeloom.roles.protocols import Need

EXPERIMENT = Experiment.model_validate(
    {
        "metrics": {"auroc": 0.725, "wins": 37, "pairs": 71, "seeds": 5, "dimensions": 300},
        "results": "Best 37/71 (52.1%). Recall rose from 0.41 to 0.48.",
        "verdict": "refuted",
    }
)


def planned(text: str, *queries: str) -> Need | None:
    return next(iter(without_own_results([Need("N4", text, queries or (text,), "number")], EXPERIMENT)), None)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("an AUROC of 0.725 for the edge prior", "an AUROC for the edge prior"),
        ("whether 72.5% is usual for degree alone", "whether is usual for degree alone"),
        ("transfer from TCGA to CCLE (37/71, 52.1%)", "transfer from TCGA to CCLE"),
        ("recall rose from 0.41 to 0.48 with dropout", "recall rose with dropout"),
        ("the hypothesis that dropout helps is refuted here", "the hypothesis that dropout helps"),
        ("dropout helps: not supported.", "dropout helps."),
        ("why the refuted hypothesis that dropout helps failed", "why the hypothesis that dropout helps failed"),
        (
            "how our results compare with other degree-based predictors",
            "how results compare with other degree-based predictors",
        ),
        ("We found that degree predicts edges", "degree predicts edges"),
        ("calibration here and elsewhere", "calibration and elsewhere"),
    ],
)
def test_the_users_own_numbers_verdicts_and_results_are_removed_from_queries(said: str, left: str) -> None:
    need = planned(said)
    assert need is not None and (need.text, need.queries) == (left, (left,))


@pytest.mark.parametrize(
    "said",
    [
        "laboratory-confirmed cases of measles in 2019",
        "screening that is supported by randomised trials",
        "GPT-4, ResNet50 and F1 scores of 12 benchmarks",
        "whether a threshold of p < 0.05 is too weak",
        "two explanations of degree bias",
        "where and why hypotheses on sleep were confirmed in mice",
    ],
)
def test_a_statement_that_a_paper_could_make_is_searched_unchanged(said: str) -> None:
    assert planned(said) == Need("N4", said, (said,), "number")


def test_a_query_with_nothing_else_is_dropped_and_its_need_searched_by_its_words() -> None:
    need = planned("what degree alone predicts", "0.725", "37/71 (52.1%) refuted here")
    assert need == Need("N4", "what degree alone predicts", ("what degree alone predicts",), "number")
    assert planned("0.725 here", "degree alone") == Need("N4", "degree alone", ("degree alone",), "number")
    assert planned("0.725 refuted", "37/71") is None
