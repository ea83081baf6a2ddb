"""Experiments as large as a request may be: used in part with a notice, and refused like small ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.run_fixtures import experiment
from tests.support.served_app import Served, served_app

__all__ = ["experiment"]

JSON = {"Content-Type": "application/json"}
LARGE = "The ensemble lowered the error on new wearers. " * 75_000


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with served_app(home) as server:
        yield server


def test_a_section_of_a_large_experiment_says_which_parts_were_used(
    served: Served, home: Path, experiment: dict[str, Any]
) -> None:
    experiment = {**experiment, "execution_result": {"stdout": LARGE}}
    before = _size(home)
    answer = served.post("/sections/discussion", {"experiment": experiment})

    assert answer.status_code == 200, answer.text
    notice = "execution_result.stdout: has 3,525,000 characters, of which the first and last"
    assert any(notice in line for line in answer.json()["warnings"])
    assert _size(home) - before < 5_000_000
    again = served.post("/sections/discussion", {"experiment": experiment}).json()
    assert again["thread_id"] == answer.json()["thread_id"]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_check_names_unused_parts(served: Served, experiment: dict[str, Any]) -> None:
    experiment = {**experiment, "metrics": {f"error_{n}": round(n / 7, 3) for n in range(100_000)}}
    report = served.post("/experiments/check", {"experiment": experiment}).json()

    assert report["ready"], report
    assert any("metrics: " in line for line in report["warnings"])


@pytest.mark.parametrize("wrong", [{"metrics": 3}, {"plots": [1], "title": 2}, {"metrics": {"a": [{"b\ud800": 1}]}}])
def test_a_large_experiment_is_refused_with_the_message_for_a_small_one(served: Served, wrong: dict[str, Any]) -> None:
    small, large = ({"experiment": {**wrong, "experimental_plan": text}} for text in ("A plan.", LARGE))

    for path in ("/experiments/check", "/sections/discussion"):
        sent = (json.dumps(body) for body in (small, large))
        first, second = (served.api.post(path, content=body, headers=JSON) for body in sent)
        assert first.status_code == second.status_code and first.json() == second.json()


@pytest.mark.parametrize("body", ["[" * 200_000, '{"experiment": ' + '{"a":' * 50_000, '["' + "x" * 200_000 + '"]'])
def test_a_large_body_that_is_not_an_experiment_is_refused(served: Served, body: str) -> None:
    for path in ("/experiments/check", "/sections/discussion"):
        answer = served.api.post(path, content=body, headers=JSON)
        assert answer.status_code in (400, 422) and len(answer.text) < 40_000, answer.text[:300]
    assert json.loads(served.api.get("/health").text) == {"status": "ok"}
