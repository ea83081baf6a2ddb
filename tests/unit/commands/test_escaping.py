"""Outside names and texts on a terminal: control characters are shown escaped; JSON keeps the text."""

from __future__ import annotations

import json

import pytest

from citeloom.commands.output import notice, one_line, printable, result, result_json, table

pytestmark = pytest.mark.attack

ATTACKS = {
    "overrides the direction": ("gnp\u202egpj.exe", "gnp\\u202egpj.exe"),
    "isolates": ("a\u2066b\u2069", "a\\u2066b\\u2069"),
    "clears the screen": ("\x1b[2Jpaper", "\\x1b[2Jpaper"),
    "sets the title of the window": ("\x1b]0;evil\x07", "\\x1b]0;evil\\x07"),
    "by one character": ("\x9b31m", "\\x9b31m"),
    "goes back": ("good\rbad", "good\\rbad"),
    "rubs out": ("good\x08\x08bad", "good\\x08\\x08bad"),
    "begins a line of its own": ("a.pdf\nError: none", "a.pdf\\nError: none"),
    "separates lines": ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
    "hides letters in tags": ("a\U000e0041", "a\\U000e0041"),
    "is no character": ("a\udc80", "a\\udc80"),
    "is not seen": ("pay\u200bpal", "pay\\u200bpal"),
    "tabs away": ("a\tb", "a\\tb"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_name_is_shown_escaped_on_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    given, seen = ATTACKS[name]

    assert one_line(given) == seen
    notice(f"Refused: {given}: is no paper")
    assert capsys.readouterr().err == f"Refused: {seen}: is no paper\n"


@pytest.mark.parametrize("name", ATTACKS)
def test_json_on_a_terminal_is_escaped_without_losing_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    given, _ = ATTACKS[name]

    result_json({"title": given})

    out = capsys.readouterr().out
    assert json.loads(out) == {"title": given}
    assert printable(out) == out


def test_running_text_keeps_its_lines_and_letters(capsys: pytest.CaptureFixture[str]) -> None:
    text = "Ein Maß.\n\n| a | b |\n\tשלום 你好 नमस्ते\u200d"

    result(text)

    assert capsys.readouterr().out == f"{text}\n"


def test_table_titles_and_cells_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    table("1 \x1b[2Jpaper\nError", [{"key": "smith\u202e2020"}], {"key": "key"})

    out = capsys.readouterr().out
    assert "1 \\x1b[2Jpaper\\nError\n" in out and "smith\\u202e2020" in out and "\x1b[2J" not in out
