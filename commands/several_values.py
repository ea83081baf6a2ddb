"""Recognises an option that was given several values at once, and says to repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InputError

_UNEXPECTED = "Got unexpected extra argument"


def repeat_hint(error: Any, arguments: Sequence[str]) -> str:
    """The remedy where a usage error comes from several values of a repeatable option; empty for any other error."""
    if (given := getattr(error, "param", None)) is not None:  # --format a,b
        value = error.message.removeprefix("Value error, ").partition(" is not ")[0]
        return _hint(given.opts[0]) if given.multiple and "," in value else ""
    command = getattr(getattr(error, "ctx", None), "command", None)
    if command is None or not error.format_message().startswith(_UNEXPECTED):
        return ""
    repeatable = {name for option in command.params if getattr(option, "multiple", False) for name in option.opts}
    return next((_hint(name) for name in _followed_by_two(arguments) if name in repeatable), "")


def require_no_value(option: str, values: Sequence[str], file: object) -> None:
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
