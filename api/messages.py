"""Helpers for messages: counted nouns, and commands as the user would type them."""

from ..invalid_values import describe_invalid as describe_invalid, field_path as field_path
from ..plurals import counted as counted, megabytes as megabytes
from ..program import (
    NAME as NAME,
    command as command,
    filled as filled,
    given_command as given_command,
    help_as_called as help_as_called,
    install_hint as install_hint,
    program as program,
    remember_command as remember_command,
)
from ..text.words import shorten as shorten
