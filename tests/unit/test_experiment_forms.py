"""Forms in which people write `exp.json`: the intended meaning is accepted, and all problems are reported at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from citeloom.experiment import (
    ExperimentError,
    experiment_warnings,
    load_experiment,
    parse_experiment,
    require_fields,
)


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
def test_a_plausible_form_is_accepted(given: dict[str, Any], path: str, taken: str) -> None:
    assert parse_experiment(given).text_at(path) == taken


@pytest.mark.parametrize("plots", ["roc.png", ["roc.png"], {"path": "roc.png"}, [{"path": "roc.png"}]])
def test_a_plot_may_be_only_a_path(plots: object) -> None:
    (plot,) = parse_experiment({"plots": plots}).plots
    assert not isinstance(plot, str) and plot.path == "roc.png"


@pytest.mark.parametrize(("code", "failure"), [("0", ""), (0, ""), ("1", "returncode 1"), (None, "")])
def test_an_exit_code_may_be_text(code: object, failure: str) -> None:
    assert parse_experiment({"execution_result": {"returncode": code}}).failure == failure


def test_results_given_as_an_object_become_metrics() -> None:
    given = {"metrics": {"auroc": 0.8}, "results": {"auroc": 0.9, "n": 5}}
    assert parse_experiment(given).metrics == {"auroc": 0.8, "results": {"auroc": 0.9, "n": 5}}
    assert parse_experiment({"results": {"n": 5}}).metrics == {"n": 5}


def test_refused_metrics_cause_no_second_error_about_results() -> None:
    with pytest.raises(ExperimentError) as refused:
        parse_experiment({"metrics": "accuracy 0.9", "results": {"auroc": 0.9}}, "results")
    assert [field for field, _ in refused.value.issues] == ["metrics"] and "results" not in str(refused.value)


def test_a_parsed_experiment_parses_the_same_again() -> None:
    once = parse_experiment({"results": {"n": 5}, "plots": "a.png", "experimental_plan": ["A.", "B."], "mine": None})
    assert parse_experiment(once.model_dump()) == once


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ExperimentError) as refused:
        parse_experiment({"reasoning": {"a": 1}, "metrics": "good", "plots": 3}, source="exp.json")
    said = str(refused.value)
    assert all(name in said for name in ("field reasoning:", "field metrics:", "field plots"))
    with pytest.raises(ExperimentError) as refused:
        require_fields(parse_experiment({}), "introduction", "discussion", source="exp.json")
    assert "introduction" in str(refused.value) and "discussion" in str(refused.value)
    with pytest.raises(ExperimentError) as refused:
        require_fields(parse_experiment({}), "discussion", "conclusion", "abstract")
    assert str(refused.value).count("reasoning") == 1, "one line for what three sections need"


def test_wrong_values_types_and_missing_fields_are_reported_together_once_each() -> None:
    given = {"summary": {"a": 1}, "metrics": {"auroc": float("nan")}, "plots": 3, "paper_concept": {"title": 3.5}}
    with pytest.raises(ExperimentError) as refused:
        parse_experiment({**given, "hypotesis": "x"}, "methods", "abstract", source="exp.json")
    said = str(refused.value)
    for once in ("field metrics.auroc:", "field summary:", "field plots:", "experimental_plan", "paper_concept.desc"):
        assert said.count(once) == 1, said
    assert "hypotesis" in said and "one of the fields summary" not in said and "dict" not in said
    assert {field for field, _ in refused.value.issues} == {"metrics.auroc", "summary", "plots"}


def test_plots_given_by_name_use_the_name_as_caption() -> None:
    named = parse_experiment({"plots": {"roc_curve": "roc.png", "loss": {"path": "loss.png", "caption": "The loss."}}})
    assert [(plot.path, plot.caption) for plot in named.plots if not isinstance(plot, str)] == [
        ("roc.png", "roc curve"),
        ("loss.png", "The loss."),
    ]


def test_missing_plots_are_reported() -> None:
    with pytest.raises(ExperimentError, match="field plots:"):
        parse_experiment({"plots": {"a": 1}})
    assert any("plots[1]" in line for line in experiment_warnings(parse_experiment({"plots": ["a.png", {"a": 1}]})))


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"%PDF-1.7\n%\xd3", "PDF"),
        (b"# A title\n", "not a JSON"),
        (b'{"results": 1\n "a": 2}', "line 2"),
        (b"[]", "list"),
    ],
)
def test_a_file_that_is_not_an_experiment_is_named_for_what_it_is(content: bytes, named: str, tmp_path: Path) -> None:
    file = tmp_path / "exp.json"
    file.write_bytes(content)
    with pytest.raises(ExperimentError) as refused:
        load_experiment(file)
    assert named in str(refused.value) and str(file) in str(refused.value) and "codec" not in str(refused.value)
