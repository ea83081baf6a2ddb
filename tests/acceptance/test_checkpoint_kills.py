"""`kill -9` at every checkpoint of a run without a model: at any step, and the files are the same."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from citeloom.models.embeddings.bundled_models import LocalEmbedding
from tests.support.cli_process import ROOT, environment, run
from tests.support.sample_library import EXPERIMENT, index_samples


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return index_samples(tmp_path / "home", LocalEmbedding()).root


def interrupted(number: int, side: str, home: Path, folder: Path) -> int:
    script = ROOT / "tests" / "support" / "interrupted_section.py"
    done = subprocess.run(
        [sys.executable, str(script), "checkpoint", str(number), side, *command(home)],
        cwd=folder,
        env=environment({}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def command(home: Path) -> list[str]:
    return ["discussion", "--exp", str(EXPERIMENT), "--home", str(home)]


def record_in(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "discussion.json").read_text(encoding="utf-8"))
    return record


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_run_killed_at_every_checkpoint_writes_the_same_files(side: str, home: Path, tmp_path: Path) -> None:
    """Each process resumes the run and is killed at the second checkpoint that it writes."""
    codes: list[int] = []
    while not codes or codes[-1] != 0:
        codes.append(interrupted(2, side, home, tmp_path))
        assert codes[-1] in (0, -signal.SIGKILL)
        assert len(codes) < 20, "a killed run does not move on"
    assert len(codes) > 3
    killed = record_in(tmp_path)
    anew = run(*command(home), "--fresh", "--out", "anew", cwd=tmp_path)
    assert anew.code == 0, anew.err
    undisturbed = record_in(tmp_path / "anew")
    for field in ("text", "citations", "evidence", "references", "warnings"):
        assert killed[field] == undisturbed[field], field
