"""Names the program in help texts and errors the way it was started."""

from __future__ import annotations

from typing import Any

from ..api.messages import help_as_called


def name_program(command: Any) -> None:
    """Make the examples in the help of a command and its subcommands start the way this process was started."""
    for text in ("help", "short_help", "epilog"):
        if written := getattr(command, text, None):
            setattr(command, text, help_as_called(written))
    for below in getattr(command, "commands", {}).values():
        name_program(below)
