"""`make install`: little is printed, progress among it, and a failed install fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Stands for Python and its pip: an install that prints a line for each package unless it is told not to.
PYTHON = """#!/bin/sh
case "$*" in *pip*)
    echo "$@" > asked
    printf '  Collecting one\\n  Collecting two\\n' > .venv/pip.log
    case "$*" in *--quiet*) ;; *) seq 100 ;; esac
    until [ -e seen ]; do :; done
    exit CODE;;
esac
"""


@pytest.mark.parametrize("code", [0, 1])
def test_an_install_prints_progress_and_no_line_for_each_package(tmp_path: Path, code: int) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON.replace("CODE", str(code)), encoding="utf-8")
    python.chmod(0o755)
    command = ["make", "install", f"PYTHON={python}", "EVERY=0"]
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as making:
        assert making.stdout is not None
        first = making.stdout.readline()
        progress = next(line for line in making.stdout if "2 packages fetched" in line)
        (tmp_path / "seen").touch()
        rest = making.stdout.read()
    assert "GB" in first and "MB" in progress
    assert not any(line.isdigit() for line in rest.splitlines())
    assert (making.returncode == 0) == (code == 0) and (tmp_path / ".venv" / ".core").exists() == (code == 0)
    assert "-e ." in (tmp_path / "asked").read_text("utf-8")
