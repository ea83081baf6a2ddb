"""The experiment of a section command: named first, or as --exp."""

from __future__ import annotations

from pathlib import Path

import pytest

from citeloom.commands.sections import experiment_file
from citeloom.errors import InputError

EXP, OTHER = Path("exp.json"), Path("other.json")


@pytest.mark.parametrize("given", [(EXP, None), (None, EXP), (EXP, EXP)])
def test_the_experiment_is_given_by_position_or_by_option(given: tuple[Path | None, Path | None]) -> None:
    assert experiment_file("discussion", *given) == EXP


def test_two_experiments_are_refused() -> None:
    with pytest.raises(InputError, match=r"exp\.json and other\.json"):
        experiment_file("discussion", EXP, OTHER)


def test_a_command_without_an_experiment_says_how_to_give_it() -> None:
    with pytest.raises(InputError) as error:
        experiment_file("paper", None, None)
    assert error.value.help is not None and "paper exp.json" in error.value.help
