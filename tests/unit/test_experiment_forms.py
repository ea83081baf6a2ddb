"""Forms in which people write `exp.json`: what is meant is taken, and all that is wrong is said at once."""

from __future__ import annotations

from typing import Any

import pytest

from citeloom.experiment import ExperimentError, parse_experiment, require_fields


@pytest.mark.parametrize(
    ("given", "path", "taken"),
    [
        ({"experimental_plan": ["Train it.", "Test it."]}, "experimental_plan", "Train it.\n\nTest it."),
        ({"results": 0.9}, "results", "0.9"),
        ({"summary": None}, "summary", ""),
        ({"hypothesis": "It halves the error."}, "hypothesis.description", "It halves the error."),
        ({"paper_concept": {"open_questions": "Why?"}}, "paper_concept.open_questions", "Why?"),
        ({"execution_result": "accuracy 0.9"}, "execution_result.stdout", "accuracy 0.9"),
        ({"results": {"auroc": "0.903"}}, "metrics", "auroc: 0.903"),
        ({"metrics": [{"name": "auroc", "value": 0.9}]}, "metrics", "auroc: 0.9"),
        ({"plots": "roc.png"}, "plots", ""),
    ],
)
def test_a_plausible_form_is_taken(given: dict[str, Any], path: str, taken: str) -> None:
    assert parse_experiment(given).text_at(path) == taken


@pytest.mark.parametrize("plots", ["roc.png", ["roc.png"], {"path": "roc.png"}, [{"path": "roc.png"}]])
def test_a_plot_may_be_its_path_alone(plots: object) -> None:
    (plot,) = parse_experiment({"plots": plots}).plots
    assert not isinstance(plot, str) and plot.path == "roc.png"


@pytest.mark.parametrize(("code", "failure"), [("0", ""), (0, ""), ("1", "returncode 1"), (None, "")])
def test_an_exit_code_may_be_text(code: object, failure: str) -> None:
    assert parse_experiment({"execution_result": {"returncode": code}}).failure == failure


def test_results_as_an_object_join_the_metrics() -> None:
    given = {"metrics": {"auroc": 0.8}, "results": {"auroc": 0.9, "n": 5}}
    assert parse_experiment(given).metrics == {"auroc": 0.8, "results": {"auroc": 0.9, "n": 5}}
    assert parse_experiment({"results": {"n": 5}}).metrics == {"n": 5}


def test_what_was_read_reads_the_same_again() -> None:
    once = parse_experiment({"results": {"n": 5}, "plots": "a.png", "experimental_plan": ["A.", "B."], "mine": None})
    assert parse_experiment(once.model_dump()) == once


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(ExperimentError) as refused:
        parse_experiment({"reasoning": {"a": 1}, "metrics": "good", "plots": 3}, source="exp.json")
    said = str(refused.value)
    assert all(name in said for name in ("field reasoning:", "field metrics:", "field plots"))
    with pytest.raises(ExperimentError) as refused:
        require_fields(parse_experiment({}), "introduction", "discussion", source="exp.json")
    assert "but introduction needs it" in str(refused.value) and "but discussion needs it" in str(refused.value)
