"""Help texts that name the program as it was called, and errors that name the command's own help."""

from __future__ import annotations

from typing import Any

from ..program import help_as_called


def name_program(command: Any) -> None:
    """Have the examples in the help of a command, and of those below it, begin as this process was called."""
    for text in ("help", "short_help", "epilog"):
        if written := getattr(command, text, None):
            setattr(command, text, help_as_called(written))
    for below in getattr(command, "commands", {}).values():
        name_program(below)
