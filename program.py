"""How this process was invoked, so that commands in messages can be typed verbatim."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .section_kinds import SECTION_KINDS

NAME: Final = "citeloom"
# Placeholders in texts defined before the invocation is known: the program, and the program with its command.
PLACEHOLDER: Final = "{citeloom}"
COMMAND: Final = "{command}"
_IN_HELP = re.compile(rf"(?m)^([ \t]*(?:Example: )?){NAME} (?=[a-z])")


def program(arguments: Sequence[str] | None = None) -> str:
    """`citeloom` if installed, `python cli.py` from its folder, `python -m citeloom` as a module.

    A program that uses the package (a notebook, the LangGraph server) gets the installed name.
    """
    called = next(iter(sys.argv if arguments is None else arguments), "")
    name = Path(called).name
    if name == "__main__.py" and Path(called).parent.name == NAME:
        return f"python -m {NAME}"
    return f"python {shlex.quote(called)}" if name == "cli.py" else NAME


def command(arguments: str) -> str:
    """A Citeloom command with these arguments, as the user can type it."""
    return f"{program()} {arguments}"


def install_hint(extra: str) -> str:
    """How to install an extra, as a sentence without a full stop."""
    return f"Install it in Citeloom's folder: pip install -e '.[{extra}]'"


def fill_placeholders(text: str) -> str:
    """Replace each `PLACEHOLDER` in a text by the program, and `COMMAND` by the command that writes a section."""
    given = given_command()
    return text.replace(COMMAND, command(given if given in SECTION_KINDS else "paper")).replace(PLACEHOLDER, program())


def given_command() -> str:
    return _given[0] if _given else ""


def remember_command(name: str | None) -> None:
    _given[:] = [name] if name else []


_given: list[str] = []


def adapt_help(text: str) -> str:
    """Replace the installed name in the examples of a help text by the invocation of this process."""
    return _IN_HELP.sub(lambda match: f"{match[1]}{program()} ", text)
