"""What a type checker says of a program that calls Citeloom: a misspelt or mistyped option is found before it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

PROGRAM = """\
import citeloom

with citeloom.open_library("home") as library:
    citeloom.research(library, "Why?", min_year=2000, formats=["html"], out="answers")
    citeloom.research(library, "Why?", min_yaer=2000)
    citeloom.write_section(library, "discussion", "exp.json", formats="docx", out="paper")
    citeloom.write_section(library, "discusion", "exp.json")
    citeloom.write_paper(library, "exp.json", formats="word")
    citeloom.astream_research(library, "Why?", singel_shot=True)
    citeloom.Conversation(library).ask("Why?", alone="yes")
    citeloom.open_library(setings=None)
"""
WRONG = {5: "min_yaer", 7: "discusion", 8: "formats", 9: "singel_shot", 10: "alone", 11: "setings"}


def test_mypy_rejects_every_wrong_option_and_accepts_every_right_one(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    errors = [line for line in done.stdout.splitlines() if "program.py:" in line and ": error:" in line]
    found = {int(line.split("program.py:")[1].split(":")[0]): line for line in errors}
    assert set(found) == set(WRONG), done.stdout + done.stderr
    assert all(words in found[line] for line, words in WRONG.items()), done.stdout
