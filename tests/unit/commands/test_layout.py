from __future__ import annotations

import pytest

from citeloom.commands.output import end_with_command, table

COMMAND = "citeloom --home /home/researcher/papers/reviews chat --thread chat-9bca04e15771"


def test_a_long_command_stays_whole_on_its_own_line() -> None:
    assert end_with_command("To continue:", COMMAND, 160) == f"To continue: {COMMAND}"
    assert end_with_command("To continue:", COMMAND, 80) == f"To continue:\n{COMMAND}"
    assert end_with_command("To continue:", COMMAND, 40).splitlines()[-1] == COMMAND
    assert end_with_command("To continue:", COMMAND, None) == f"To continue: {COMMAND}"


def test_a_table_that_does_not_fit_keeps_its_column_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    row = {"study": "obrien2019seeds", "design": "Two hundred networks were trained", "effect": "None was found"}
    table("Studies", [row], {name: name for name in row}, prose=("design", "effect"))
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["Studies", "obrien2019seeds"]
    assert "  design: Two hundred networks were" in shown and "  effect: None was found" in shown
