from __future__ import annotations

from citeloom.commands.terminal_text import end_with_command

COMMAND = "citeloom --home /home/researcher/papers/reviews chat --thread chat-9bca04e15771"


def test_a_command_that_does_not_fit_beside_its_text_stays_whole_on_a_line_of_its_own() -> None:
    assert end_with_command("To continue:", COMMAND, 160) == f"To continue: {COMMAND}"
    assert end_with_command("To continue:", COMMAND, 80) == f"To continue:\n{COMMAND}"
    assert end_with_command("To continue:", COMMAND, 40).splitlines()[-1] == COMMAND
    assert end_with_command("To continue:", COMMAND, None) == f"To continue: {COMMAND}"
