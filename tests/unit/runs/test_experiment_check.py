"""An experiment is checked before anything is written from it."""

from __future__ import annotations

from typing import Any

import pytest

from citeloom.runs.experiment_check import check_experiment


def test_each_section_names_the_fields_that_it_lacks() -> None:
    check = check_experiment({"summary": "All went well.", "paper_concept": {"description": "Degrees."}})
    assert not check["problems"] and set(check["ready"]) == {"discussion", "conclusion", "abstract"}
    assert check["missing"]["methods"] == [("experimental_plan", "hypothesis.method_combination")]
    assert check["missing"]["introduction"] == [("hypothesis.description", "paper_concept.open_questions")]


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        ({"metrics": 3, "summary": {"x": 1}}, {"metrics", "summary"}),
        (
            {"paper_concept": {"title": {"x": 1}, "open_questions": 1}},
            {"paper_concept.title", "paper_concept.open_questions"},
        ),
        ({"metrics": {"auroc": float("nan")}}, {"metrics.auroc"}),
        ({"results": "half a \ud83d character"}, {"results"}),
        ([], {""}),
        (None, {""}),
    ],
)
def test_all_wrong_fields_are_reported_at_once_and_no_section_is_ready(data: Any, fields: set[str]) -> None:
    check = check_experiment(data)
    assert {problem["field"] for problem in check["problems"]} == fields
    assert not check["ready"] and all(problem["message"] for problem in check["problems"])


def test_misspelt_fields_and_failed_runs_are_warnings() -> None:
    check = check_experiment({"hypotesis": {"description": "x"}, "execution_result": {"returncode": 1}})
    assert any("did you mean hypothesis" in line for line in check["warnings"])
    assert any("returncode 1" in line for line in check["warnings"])
