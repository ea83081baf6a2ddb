"""A malicious `exp.json` gets one line that names file and field, nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from citeloom.errors import WRONG_INPUT
from citeloom.experiment import ExperimentError, load_experiment, parse_experiment

pytestmark = pytest.mark.attack

ATTACKS = {
    "an integer of 5,000 digits": ('{"metrics": {"auroc": %s}}' % ("9" * 5_000), "metrics.auroc"),
    "a negative one": ('{"metrics": {"runs": [1, -%s]}}' % ("9" * 5_000), "metrics.runs[1]"),
    "300 levels of lists": ('{"metrics": {"a": %s}}' % ("[" * 300 + "]" * 300), "metrics.a[0]"),
    "300 levels of objects": ('{"metrics": {"a": %s}}' % ('{"b":' * 300 + "1" + "}" * 300), "metrics.a.b"),
    "100,000 levels": ('{"metrics": %s' % ("[" * 100_000), "nested deeper"),
    "half a character in a text": ('{"results": "\\ud800"}', "results"),
    "half a character in a list": ('{"plots": ["a", "\\udfff b"]}', "plots[1]"),
    "half a character in a name": ('{"metrics": {"a\\ud800": 1}}', "metrics.a\ufffd"),
    "not a number": ('{"metrics": {"auroc": NaN}}', "metrics.auroc"),
    "infinity": ('{"metrics": {"loss": [0.1, -Infinity]}}', "metrics.loss[1]"),
    "a float beyond all floats": ('{"metrics": {"loss": 1e999}}', "metrics.loss"),
    "in a field of the user's own": ('{"mine": {"x": NaN}}', "mine.x"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_experiment_that_cannot_be_stored_is_refused_by_file_and_field(name: str, tmp_path: Path) -> None:
    written, field = ATTACKS[name]
    source = tmp_path / "exp.json"
    source.write_text(written, encoding="utf-8")

    with pytest.raises(ExperimentError) as refused:
        load_experiment(source)

    said = str(refused.value)
    assert refused.value.exit_code == WRONG_INPUT
    assert str(source) in said and field in said
    assert "\n" not in said and len(said) < 600
    said.encode("utf-8")


def test_a_file_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    source = tmp_path / "exp.json"
    with source.open("wb") as file:
        file.truncate(4_000_000_000)  # sparse: takes no room

    with pytest.raises(ExperimentError, match="50 MB"):
        load_experiment(source)


def test_data_passed_by_a_program_meet_the_same_limits() -> None:
    with pytest.raises(ExperimentError, match=r"experiment: field metrics\.a"):
        parse_experiment({"metrics": {"a": float("nan")}})


def test_ordinary_experiments_are_accepted(tmp_path: Path) -> None:
    source = tmp_path / "exp.json"
    source.write_text(json.dumps({"results": "It holds 😀.", "metrics": {"n": 10**30, "p": 1e-300, "q": None}}))

    assert load_experiment(source).metrics == {"n": 10**30, "p": 1e-300, "q": None}
