"""Which parts of a very large experiment are used, and that each shortened field is reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from citeloom.experiment import Experiment, experiment_warnings, parse_experiment

PROSE = "The ensemble lowered the error on new wearers. " * 80_000
LARGE: dict[str, tuple[dict[str, Any], str]] = {
    "plan": ({"experimental_plan": PROSE}, "experimental_plan: has 3,760,000 characters, of which the first 50,000"),
    "program": ({"experiment_code": PROSE}, "experiment_code: has 3,760,000 characters, of which the first 200,000"),
    "log": ({"execution_result": {"stdout": PROSE}}, "execution_result.stdout: has 3,760,000 characters, of which the"),
    "title": ({"paper_concept": {"title": PROSE}}, "paper_concept.title: has 3,760,000 characters, of which the first"),
    "questions": (
        {"paper_concept": {"open_questions": ["Why?"] * 40_000}},
        "paper_concept.open_questions: has 40,000 entries, of which the first 200 are used.",
    ),
    "long question": (
        {"paper_concept": {"open_questions": ["Why?", PROSE]}},
        "paper_concept.open_questions: has an entry of 3,760,000 characters, of which the first 2,000 are used.",
    ),
    "plots": ({"plots": [{"path": "a.png"}] * 50_000}, "plots: has 50,000 entries, of which the first 200 are used."),
    "captions": ({"plots": [{"caption": PROSE}]}, "plots: has an entry of 3,760,000 characters"),
    "metrics": ({"metrics": {f"error_{n}": n / 7 for n in range(120_000)}}, "metrics: "),
    "metric of one text": ({"metrics": {"log": PROSE}}, "metrics: "),
    "unknown fields": ({f"mine_{n}": [PROSE[:90]] for n in range(30_000)}, "unknown fields: "),
    "unknown fields of plots": ({"plots": [{"path": "a.png", "data": [0.5] * 500_000}]}, "unknown fields: "),
    "long name": ({PROSE: 1}, "unknown fields: "),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_field_is_used_in_part_and_named(name: str) -> None:
    given, notice = LARGE[name]
    experiment = parse_experiment({"results": "It holds.", **given})

    assert len(experiment.model_dump_json()) < 300_000
    assert experiment.results == "It holds."
    assert f"experiment: {notice}" in "\n".join(experiment_warnings(experiment))


@pytest.mark.parametrize("name", LARGE)
def test_a_shortened_field_parses_the_same_again(name: str) -> None:
    experiment = parse_experiment(LARGE[name][0])
    stored = json.loads(experiment.model_dump_json())

    assert parse_experiment(stored) == experiment
    assert experiment_warnings(parse_experiment(stored)) == experiment_warnings(experiment)


def test_the_start_and_end_of_a_log_are_used() -> None:
    log = "seed 42\n" + "epoch done\n" * 100_000 + "final accuracy 0.93\n"
    used = parse_experiment({"execution_result": {"stdout": log}}).execution_result.stdout

    assert used.startswith("seed 42\n") and used.endswith("final accuracy 0.93\n") and "[...]" in used
    assert len(used) <= 100_000


def test_single_metrics_are_used_before_long_lists() -> None:
    curve = [1 / (n + 1) for n in range(100_000)]
    used = parse_experiment({"metrics": {"loss": curve, "accuracy": 0.93, "by_wearer": {"w1": 0.9}}}).metrics

    assert (used["accuracy"], used["by_wearer"]) == (0.93, {"w1": 0.9})
    assert list(used) == ["loss", "accuracy", "by_wearer"]
    assert 5_000 < len(used["loss"]) < 100_000 and used["loss"] == curve[: len(used["loss"])]


def test_a_notice_is_not_part_of_the_users_words() -> None:
    experiment = parse_experiment({"experimental_plan": PROSE})

    assert "3,760,000" not in experiment.words
    assert not [path for path, _ in experiment.leaves() if "shortened" in path]


@pytest.mark.parametrize("given", [3, "text", [1, None], ["x" * 10_000] * 1_000])
def test_notices_in_the_input_are_limited_in_size(given: Any) -> None:
    experiment = parse_experiment({"results": "It holds.", "_shortened": given})

    assert len(experiment.model_dump_json()) < 20_000
    assert isinstance(experiment, Experiment)


def test_ordinary_fields_are_used_completely() -> None:
    given = {
        "experimental_plan": PROSE[:40_000],
        "experiment_code": PROSE[:150_000],
        "metrics": {f"loss_{n}": [0.123456] * 500 for n in range(20)},
        "plots": [{"path": f"{n}.png", "caption": "Error by wearer."} for n in range(60)],
    }
    experiment = parse_experiment(given)

    assert experiment.model_dump(exclude_unset=True) == given
    assert not [line for line in experiment_warnings(experiment) if "used" in line]
