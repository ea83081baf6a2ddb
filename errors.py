"""What can go wrong, and what the user or the machine should do about it.

Every error that Citeloom raises on purpose is a `CiteloomError`. It carries three policies, so that no
caller has to know the subclass: the exit code of the command line, whether the same call may be tried
again, and one line of help. Subclasses with a meaning of their own live beside the code that raises them.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from .program import filled

ExitCode = Literal[0, 1, 2, 3, 4]

DONE: ExitCode = 0
UNEXPECTED: ExitCode = 1
WRONG_INPUT: ExitCode = 2
PAUSED: ExitCode = 3
DONE_WITH_REFUSALS: ExitCode = 4


class CiteloomError(RuntimeError):
    """Base of all errors that Citeloom raises on purpose.

    A RuntimeError, since the LangGraph server shows the message of Python's own errors only; of any other it
    says "An internal error occurred".

    Args:
        message: one line that names the file, field, key or page and what was expected.
        help: the remedy, as one line, with `{citeloom}` for the program; the class's own when left out.
    """

    exit_code: ClassVar[ExitCode] = UNEXPECTED
    retryable: ClassVar[bool] = False
    default_help: ClassVar[str] = ""

    def __init__(self, message: str, *, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = filled(self.default_help if help is None else help)

    def __str__(self) -> str:
        return f"{self.message} {self.help}".strip()


class InputError(CiteloomError):
    """The command, a file or a setting is wrong; nothing was changed."""

    exit_code = WRONG_INPUT


class ConfigurationError(InputError):
    """A setting is missing or out of its bounds, or a configured model cannot be used."""


class PausedError(CiteloomError):
    """The run stopped early; completed calls are saved, and the same command resumes it."""

    exit_code = PAUSED
    default_help = "Completed calls are saved; the same command resumes the run."
