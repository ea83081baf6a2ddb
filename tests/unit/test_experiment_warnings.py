"""Warnings about a valid `exp.json` that is probably not intended: misspelt fields, failed runs."""

from __future__ import annotations

from typing import Any

import pytest

from citeloom.experiment import ExperimentError, experiment_warnings, near_fields, parse_experiment, require_fields

GOOD: dict[str, Any] = {
    "paper_concept": {"title": "Priors", "description": "Node degree predicts edges."},
    "hypothesis": {"description": "Degree explains it."},
    "execution_result": {"stdout": "auroc 0.97", "returncode": 0},
    "metrics": {"auroc": 0.97},
    "verdict": "supported",
    "results": "AUROC was 0.97.",
    "reasoning": "Degree alone reconstructs most networks.",
}


@pytest.mark.parametrize(
    ("data", "found", "meant"),
    [
        ({"hypotesis": {"description": "x"}}, "hypotesis", "hypothesis"),
        ({"Hypothesis": {}}, "Hypothesis", "hypothesis"),
        ({"result": "x"}, "result", "results"),
        ({"paperConcept": {}}, "paperConcept", "paper_concept"),
        ({"experimental-plan": "x"}, "experimental-plan", "experimental_plan"),
        ({"metric": {}}, "metric", "metrics"),
        ({"paper_concept": {"desciption": "x"}}, "paper_concept.desciption", "paper_concept.description"),
        ({"execution_result": {"return_code": 0}}, "execution_result.return_code", "execution_result.returncode"),
        ({"plots": [{"path": "a.png", "captoin": "x"}]}, "plots[0].captoin", "plots[0].caption"),
        ({"plan": "x"}, "plan", "experimental_plan"),
        ({"Code": "x"}, "Code", "experiment_code"),
        ({"paper_concept": {"questions": ["x"]}}, "paper_concept.questions", "paper_concept.open_questions"),
    ],
)
def test_a_misspelt_field_is_reported_with_the_intended_one(data: dict[str, Any], found: str, meant: str) -> None:
    experiment = parse_experiment(data)
    assert near_fields(experiment) == [(found, meant)]
    assert any(found in line and f"did you mean {meant}?" in line for line in experiment_warnings(experiment))


def test_the_users_own_fields_are_reported_in_one_line_as_unused() -> None:
    own = dict.fromkeys(["authors", "funding", "limitations", "notes", "x", "_source", "_hypotesis"], "whatever")
    concept = {**GOOD["paper_concept"], "field": "biology"}
    (line,) = experiment_warnings(parse_experiment({**GOOD, **own, "paper_concept": concept, "exit_code": 0}))
    assert line.endswith("can use: authors, funding, limitations, notes, x, paper_concept.field.")


@pytest.mark.parametrize("concept", [None, "Degree predicts edges.", {"description": "Degree predicts edges."}])
def test_a_title_beside_the_concept_becomes_its_title(concept: object) -> None:
    experiment = parse_experiment({"title": "Priors", **({"paper_concept": concept} if concept else {})})
    assert experiment.paper_concept.title == "Priors" and experiment_warnings(experiment) == []
    assert experiment.paper_concept.description == ("Degree predicts edges." if concept else "")


def test_a_second_title_beside_that_of_the_concept_is_reported() -> None:
    experiment = parse_experiment({**GOOD, "title": "Of the repository"})
    assert experiment.paper_concept.title == "Priors" and "title" in experiment_warnings(experiment)[0]


def test_a_section_that_lacks_a_misspelt_field_names_it() -> None:
    experiment = parse_experiment({"paper_concept": {"description": "x"}, "hypotesis": {"description": "y"}})
    with pytest.raises(ExperimentError, match=r"hypotesis.*hypothesis"):
        require_fields(experiment, "introduction")


@pytest.mark.parametrize(
    "failed",
    [
        {"execution_result": {"stdout": "auroc 0.97", "returncode": 1}},
        {"execution_result": {"stdout": "auroc 0.97", "returncode": -9}},
        {"execution_result": {"stdout": "auroc 0.97", "exit_code": 137}},
        {"execution_result": {"stdout": "auroc 0.97", "status": "Failed"}},
        {"execution_result": {"stdout": "auroc 0.97", "status": "timed out"}},
        {"execution_result": {"stdout": "auroc 0.97", "success": False}},
        {"execution_result": {"stdout": "auroc 0.97", "timed_out": True}},
        {"status": "error"},
        {"returncode": 2},
    ],
)
def test_the_numbers_of_a_failed_run_are_not_results(failed: dict[str, Any]) -> None:
    experiment = parse_experiment({**GOOD, **failed})
    assert experiment.failure
    assert "0.97" not in experiment.words
    assert not experiment.verdict
    assert any("failed" in warning for warning in experiment_warnings(experiment))
    for kind in ("results", "discussion", "abstract"):
        require_fields(experiment, kind)
    assert parse_experiment(experiment.model_dump(mode="json")) == experiment, "state is parsed again at every step"


@pytest.mark.parametrize(
    "run",
    [
        {"returncode": 0},
        {"returncode": None},
        {"status": "finished", "success": True},
        {"status": "success", "failed": False},
        {"stderr": "warning: failed to use the GPU", "returncode": 0},
    ],
)
def test_a_run_that_ended_well_keeps_its_numbers(run: dict[str, Any]) -> None:
    experiment = parse_experiment({**GOOD, "execution_result": run, "outcome": "failed"})
    assert not experiment.failure
    assert experiment.metrics == {"auroc": 0.97}
