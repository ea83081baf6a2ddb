"""Runs `collected_functions` in a process of its own and reads its report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.collected_patterns import ROOT


def functions_that_grow(folder: Path, length: int, *rooms: str) -> tuple[int, list[str]]:
    """How many functions of some rooms were tried, and those that grow faster than a text of four times the length."""
    report = folder / "functions.txt"
    command = [sys.executable, "-m", "tests.support.collected_functions", str(report), str(length), *rooms]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder), "NO_COLOR": "1"}
    subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=1_800
    )
    tried, *slow = report.read_text(encoding="utf-8").split("\n")
    return int(tried), slow
