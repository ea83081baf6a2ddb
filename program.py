"""How this process was started, so that every command in a message can be copied and run."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

NAME: Final = "citeloom"
# Placeholders in texts written before it is known how the program was started: the program, and program with command.
PLACEHOLDER: Final = "{citeloom}"
COMMAND: Final = "{command}"
_IN_HELP = re.compile(rf"(?m)^(\s*(?:Example: )?){NAME} (?=[a-z])")


def program(arguments: Sequence[str] | None = None) -> str:
    """`citeloom` when installed, `python cli.py` from its folder, `python -m citeloom` as a module.

    A program that uses the package (a notebook, the LangGraph server) gets the installed name.
    """
    called = next(iter(sys.argv if arguments is None else arguments), "")
    name = Path(called).name
    if name == "__main__.py" and Path(called).parent.name == NAME:
        return f"python -m {NAME}"
    return f"python {shlex.quote(called)}" if name == "cli.py" else NAME


def command(arguments: str) -> str:
    """A Citeloom command with these arguments, as it can be typed now."""
    return f"{program()} {arguments}"


def filled(text: str) -> str:
    """`text` with the program in place of each `PLACEHOLDER`, and with the command given in place of `COMMAND`."""
    return text.replace(COMMAND, command(given_command() or "paper")).replace(PLACEHOLDER, program())


def given_command() -> str:
    """The command that this process runs; empty when there is none."""
    return _given[0] if _given else ""


def remember_command(name: str | None) -> None:
    """Remember the command that was given."""
    _given[:] = [name] if name else []


_given: list[str] = []


def help_as_called(text: str) -> str:
    """A help text whose examples, written with the installed name, begin as this process was called."""
    return _IN_HELP.sub(lambda match: f"{match[1]}{program()} ", text)
