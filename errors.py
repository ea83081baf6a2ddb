"""The base classes of all errors that Citeloom raises.

Every error that Citeloom raises deliberately is a `CiteloomError`. It carries three policies, so that callers need not
know the subclass: the exit code of the command line, whether the call may be retried, and one line of help. Specific
subclasses are defined next to the code that raises them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, Literal

from .program import fill_placeholders

ExitCode = Literal[0, 1, 2, 3, 4]

DONE: ExitCode = 0
UNEXPECTED: ExitCode = 1
WRONG_INPUT: ExitCode = 2
PAUSED: ExitCode = 3
DONE_WITH_REFUSALS: ExitCode = 4


class CiteloomError(RuntimeError):
    """Base class of all errors that Citeloom raises deliberately.

    A RuntimeError, since the LangGraph server only shows the messages of Python's built-in errors; for any other it
    says "An internal error occurred".

    Args:
        message: one line that names the file, field, key or page and what was expected.
        help: the remedy in one line, with `{citeloom}` for the program; by default the remedy of the class.
    """

    exit_code: ClassVar[ExitCode] = UNEXPECTED
    retryable: ClassVar[bool] = False
    default_help: ClassVar[str] = ""

    def __init__(self, message: str, *, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = fill_placeholders(self.default_help if help is None else help)

    def __str__(self) -> str:
        return f"{self.message} {self.help}".strip()


class InputError(CiteloomError):
    """The command, a file or a setting is invalid; nothing was changed."""

    exit_code = WRONG_INPUT


class OtherFormatError(InputError):
    """A file or database has the format of another version of Citeloom.

    Args:
        name: the file or database.
        found: its format, by number.
        known: the format that this version reads.
    """

    default_help = "Open it with that version, or make a new home (--home) and ingest your papers there."

    def __init__(self, name: object, found: int, known: int) -> None:
        super().__init__(f"{name}: {self.compare(found, known)}.")

    @staticmethod
    def compare(found: int, known: int) -> str:
        """The difference in words, for messages that name the file themselves."""
        return f"was made by another version of Citeloom (its format is {found}; this one reads {known})"


class ConfigurationError(InputError):
    """A setting is missing or out of bounds, or a configured model cannot be used."""


def require_packages(what: str, *names: str, help: str) -> None:
    """Import packages of an extra; raises `ConfigurationError` beginning with `what` if one is missing."""
    try:
        for name in names:
            import_module(name)
    except ImportError as error:
        raise ConfigurationError(f"{what} more packages ({error.name or error} is missing).", help=help) from error


class PausedError(CiteloomError):
    """The run stopped early with everything saved; the same command resumes it."""

    exit_code = PAUSED
    default_help = "Completed calls are saved; run the same command to resume."


class WaitingError(PausedError):
    """A run asks a person a question, and continues once it is answered; everything is saved.

    Args:
        run_id: the id of the run.
        question: the question, with the fields of a form under `citeloom`.
    """

    def __init__(self, run_id: str, question: Mapping[str, Any]) -> None:
        detail = question["citeloom"]
        super().__init__(
            f"Run {run_id} waits for you ({detail['ask']}: {detail['summary']}).",
            help=f"To answer: {{citeloom}} runs answer {run_id} (--accept accepts everything unchanged).",
        )
        self.run_id = run_id
        self.question = question


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all errors behind it, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting += [link.__cause__, link.__context__]
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions
