"""The command that goes on with what was paused, as it would be typed."""

from __future__ import annotations

import pytest

from citeloom.commands.going_on import command_again
from citeloom.errors import PausedError
from citeloom.models.budget import BudgetReachedError


def test_the_command_as_it_was_given() -> None:
    given = ["cli.py", "discussion", "--exp", "my exp.json", "--fresh"]
    assert command_again(given, PausedError("busy")) == "python cli.py discussion --exp 'my exp.json' --fresh"
    assert command_again(["/somewhere/bin/citeloom", "abstract"]) == "citeloom abstract"


@pytest.mark.parametrize(
    "given",
    [
        ["cli.py", "discussion", "--max-calls", "10", "--json"],
        ["cli.py", "discussion", "--max-calls=10", "--json"],
        ["cli.py", "discussion", "--json"],
    ],
)
def test_the_limit_that_was_reached_is_raised(given: list[str]) -> None:
    error = BudgetReachedError("reached", flag="--max-calls", enough=20)
    assert command_again(given, error) == "python cli.py discussion --json --max-calls 20"
