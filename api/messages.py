"""Helpers for messages: counted nouns, and commands as the user would type them."""

from ..invalid_values import describe_invalid, field_path
from ..plurals import counted, megabytes
from ..program import (
    NAME,
    adapt_help,
    command,
    fill_placeholders,
    given_command,
    install_hint,
    program,
    remember_command,
)
from ..text.words import shorten
