"""Runs the command line as a user does, in a process of its own, or in this one when it need not be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

ROOT = Path(__file__).resolve().parent.parent.parent
CLI = ROOT / "cli.py"


@dataclass(frozen=True)
class Finished:
    """How a command ended; `code` is negative for a signal."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output of `--json`; fails when stdout contains anything else."""
        return json.loads(self.out)

    @property
    def errors(self) -> list[str]:
        """The lines of stderr that begin with "Error:"."""
        return [line for line in self.err.splitlines() if line.startswith("Error:")]


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process without Citeloom settings, plus those given (`CHAT_MODEL=...`)."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CITELOOM_", "OPENAI_"))}
    return {
        **kept,
        "LANGGRAPH_STRICT_MSGPACK": "true",
        **{f"CITELOOM_{name}": value for name, value in settings.items()},
    }


def start(*arguments: str | Path, cwd: Path, settings: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(CLI), *map(str, arguments)],
        cwd=cwd,
        env=environment(settings or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def finish(process: subprocess.Popen[str]) -> Finished:
    """Wait for a command to end."""
    out, err = process.communicate()
    return Finished(process.returncode, out, err)


def run(*arguments: str | Path, cwd: Path, settings: Mapping[str, str] | None = None) -> Finished:
    """Run the command in a process of its own to its end."""
    return finish(start(*arguments, cwd=cwd, settings=settings))


# What Typer builds from the functions is the same each time, and takes longer than most commands.
_built_once = cache(typer.main.get_command)


def run_here(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *arguments: str | Path,
    settings: Mapping[str, str] | None = None,
) -> Finished:
    """The command in this process, in its folder and environment, to its end."""
    from citeloom.cli import main

    with monkeypatch.context() as patch:
        patch.setattr(typer.main, "get_command", _built_once)
        patch.setattr(sys, "argv", ["cli.py", *map(str, arguments)])
        for name, value in (settings or {}).items():
            patch.setenv(f"CITELOOM_{name}", value)
        with pytest.raises(SystemExit) as ended:
            main()
    out, err = capsys.readouterr()
    return Finished(int(ended.value.code or 0), out, err)
