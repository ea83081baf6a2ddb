"""Builds the command that resumes a paused run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..api.messages import program
from ..errors import CiteloomError


def resume_command(arguments: Sequence[str], error: CiteloomError | None = None) -> str:
    """The command line to run again, from `arguments` (program first), with a reached limit raised."""
    given = list(arguments[1:])
    flag, enough = getattr(error, "flag", None), getattr(error, "enough", None)
    if isinstance(flag, str) and isinstance(enough, int | float):
        given = _with(given, flag, f"{enough:.10g}")
    return " ".join([program(arguments), *map(shlex.quote, given)])


def _with(arguments: Sequence[str], flag: str, value: str) -> list[str]:
    """`arguments` with `flag` set to `value`, wherever it was set before."""
    kept: list[str] = []
    after_flag = False
    for argument in arguments:
        if not after_flag and argument != flag and not argument.startswith(f"{flag}="):
            kept.append(argument)
        after_flag = argument == flag
    return [*kept, flag, value]
