"""Hints after a failed command (the disk is full, how to resume, which option to repeat), and help as started."""

from __future__ import annotations

import errno
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ..api.messages import help_as_called, program
from ..errors import CiteloomError, InputError, causes

_UNEXPECTED: Final = "Got unexpected extra argument"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# With less, SQLite and Chroma fail with errors that do not mention the disk.
_TOO_LITTLE: Final = 2 * 1024 * 1024


def disk_full(error: BaseException, places: Sequence[Path]) -> str | None:
    """A one-line message if a full disk caused the error; `places` are where the command writes, existing or not."""
    links = list(causes(error))
    # User errors are reported as such even if the disk is full; errors from libraries may be caused by it.
    ours_alone = isinstance(error, CiteloomError) and len(links) == 1
    full = [] if ours_alone else [place for place in places if _free(place) < _TOO_LITTLE]
    said = any(
        (isinstance(link, OSError) and link.errno in _FULL) or "database or disk is full" in str(link) for link in links
    )
    if not full and not said:
        return None
    where = f"{full[0]}: the disk is full" if full else "the disk is full where the output goes"
    return f"{where}; completed work is saved. Free some space and run the same command to resume."


def _free(place: Path) -> float:
    for folder in (place, *place.absolute().parents):
        try:
            return shutil.disk_usage(folder).free
        except OSError:
            continue
    return float("inf")


def resume_command(arguments: Sequence[str], error: CiteloomError | None = None) -> str:
    """The command line to run again, from `arguments` (program first), raising a limit if hit."""
    given = list(arguments[1:])
    flag, enough = getattr(error, "flag", None), getattr(error, "enough", None)
    if isinstance(flag, str) and isinstance(enough, int | float):
        before = ["", *given]
        kept = zip(before, given, strict=False)
        given = [item for last, item in kept if last != flag and item != flag and not item.startswith(f"{flag}=")]
        given += [flag, f"{enough:.10g}"]
    return " ".join([program(arguments), *map(shlex.quote, given)])


def multi_value_hint(error: Any, arguments: Sequence[str]) -> str:
    """The hint for a usage error caused by several values after a repeatable option; "" for other errors."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    if command is None or not error.format_message().startswith(_UNEXPECTED):
        return ""
    repeatable = {name for option in command.params if getattr(option, "multiple", False) for name in option.opts}
    followed_by_two = (
        name
        for name, *values in zip(arguments, arguments[1:], arguments[2:], strict=False)
        if name.startswith("--") and not any(value.startswith("-") for value in values)
    )
    return next((_hint(name) for name in followed_by_two if name in repeatable), "")


def require_single_value(option: str, values: Sequence[str], file: object) -> None:
    """Raise `InputError` if `file` is really another value of a repeatable option."""
    if str(file) in values:
        raise InputError(f"{file} is a value of {option}, not a file.", help=_hint(option).strip())


def _hint(option: str) -> str:
    return f" Give several values of {option} as one, with commas."


def use_argv_name(command: Any) -> None:
    """Make examples in the help of a command and its subcommands use the program name as started."""
    for text in ("help", "short_help", "epilog"):
        if written := getattr(command, text, None):
            setattr(command, text, help_as_called(written))
    for below in getattr(command, "commands", {}).values():
        use_argv_name(below)
