"""What messages are made of: counts with nouns, and commands as this process was started."""

from ..plurals import counted, megabytes
from ..program import (
    NAME,
    command,
    filled,
    given_command,
    help_as_called,
    install_hint,
    program,
    remember_command,
)

__all__ = [
    "NAME",
    "command",
    "counted",
    "filled",
    "given_command",
    "help_as_called",
    "install_hint",
    "megabytes",
    "program",
    "remember_command",
]
