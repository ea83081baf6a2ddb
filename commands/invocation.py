"""How this process was started: examples in help texts, the command that resumes a run, options given several times."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from ..api.messages import help_as_called, program
from ..errors import CiteloomError, InputError


def use_argv_name(command: Any) -> None:
    """Make the examples in the help of a command and its subcommands start the way this process was started."""
    for text in ("help", "short_help", "epilog"):
        if written := getattr(command, text, None):
            setattr(command, text, help_as_called(written))
    for below in getattr(command, "commands", {}).values():
        use_argv_name(below)


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


_UNEXPECTED = "Got unexpected extra argument"


def multi_value_hint(error: Any, arguments: Sequence[str]) -> str:
    """The remedy where a usage error comes from several values of a repeatable option; empty for any other error."""
    if (given := getattr(error, "param", None)) is not None:  # --format a,b
        value = error.message.removeprefix("Value error, ").partition(" is not ")[0]
        return _hint(given.opts[0]) if given.multiple and "," in value else ""
    command = getattr(getattr(error, "ctx", None), "command", None)
    if command is None or not error.format_message().startswith(_UNEXPECTED):
        return ""
    repeatable = {name for option in command.params if getattr(option, "multiple", False) for name in option.opts}
    return next((_hint(name) for name in _followed_by_two(arguments) if name in repeatable), "")


def require_single_value(option: str, values: Sequence[str], file: object) -> None:
    """Raise `InputError` if what was taken for a file is a further value of a repeatable option."""
    if str(file) in values:
        raise InputError(f"{file} is a value of {option}, not a file.", help=_hint(option).strip())


def _followed_by_two(arguments: Sequence[str]) -> list[str]:
    """The options that two values follow."""
    places = zip(arguments, arguments[1:], arguments[2:], strict=False)
    return [
        name
        for name, first, second in places
        if name.startswith("--") and not first.startswith("-") and not second.startswith("-")
    ]


def _hint(option: str) -> str:
    return f" Give {option} once for each value."
