"""The command that resumes a paused run, as it would be typed."""

from __future__ import annotations

import pytest

from citeloom.commands.options import resume_command
from citeloom.errors import PausedError
from citeloom.models.journal.budget import BudgetReachedError


def test_the_hint_repeats_the_command_as_it_was_given() -> None:
    given = ["cli.py", "discussion", "--exp", "my exp.json", "--fresh"]
    assert resume_command(given, PausedError("busy")) == "python cli.py discussion --exp 'my exp.json' --fresh"
    assert resume_command(["/somewhere/bin/citeloom", "abstract"]) == "citeloom abstract"


@pytest.mark.parametrize(
    "given",
    [
        ["cli.py", "discussion", "--max-calls", "10", "--json"],
        ["cli.py", "discussion", "--max-calls=10", "--json"],
        ["cli.py", "discussion", "--json"],
    ],
)
def test_the_hint_raises_the_limit_that_was_reached(given: list[str]) -> None:
    error = BudgetReachedError("reached", flag="--max-calls", enough=20)
    assert resume_command(given, error) == "python cli.py discussion --json --max-calls 20"
