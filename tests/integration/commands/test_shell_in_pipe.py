"""`chat` without a terminal: one line at a time, plain output, and the exit code of a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.cli_process import CLI, environment


def piped(lines: str, home: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CLI), "chat", "--home", str(home)]
    return subprocess.run(
        command, cwd=cwd, env=environment({}), input=lines, capture_output=True, text=True, encoding="utf-8"
    )


def test_piped_lines_are_executed_one_after_another(home: Path, tmp_path: Path) -> None:
    done = piped("list\n\nsummary 3\nopen 3\n", home, tmp_path)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout.startswith("3 papers\n") and "1 │ obrien2019seeds" in " ".join(done.stdout.split())
    assert "\nvarga2021calibration: " in done.stdout
    assert "Next steps" not in done.stdout
    assert [line for line in done.stderr.splitlines() if line.startswith("You:")] == [
        "You: list",
        "You: summary 3",
        "You: open 3",
    ]
    assert "File: " in done.stderr
    assert not (home / "chat_history").exists()


def test_a_failing_line_is_reported_and_the_others_are_executed(home: Path, tmp_path: Path) -> None:
    done = piped("summary 1\nlst\nlist\nquit\nlist\n", home, tmp_path)
    assert done.returncode == 2
    assert "no list that 1 could refer to" in done.stderr
    assert "Did you mean 'list'?" in done.stderr
    assert done.stdout.count("3 papers") == 1


def test_an_empty_library_creates_nothing(tmp_path: Path) -> None:
    done = piped("list\n", tmp_path / "none", tmp_path)
    assert done.returncode == 2
    assert "The library is empty." in done.stderr
    assert not (tmp_path / "none").exists()
