"""Help texts for pages and agents never suggest what only the command line can do."""

from __future__ import annotations

import pytest

from citeloom.errors import CiteloomError, InputError
from citeloom.experiment import ExperimentError
from citeloom.server.problems import client_help, to_problem
from citeloom.stores.run_register import UnknownRunError


@pytest.mark.parametrize(
    ("error", "help"),
    [
        (UnknownRunError("There is no run 'x'."), ""),
        (ExperimentError("exp.json: bad."), ""),
        (InputError("No venue.", help="See '{citeloom} papers list --json' for the venues."), ""),
        (InputError("No paper.", help="Did you mean ada2020?"), "Did you mean ada2020?"),
        (
            InputError("Bad.", help="Write it as text. See '{citeloom} doctor' for the settings in force."),
            "Write it as text.",
        ),
    ],
)
def test_a_hint_to_use_a_command_is_left_out(error: CiteloomError, help: str) -> None:
    assert client_help(error) == help
    assert to_problem(error).get("help", "") == help
