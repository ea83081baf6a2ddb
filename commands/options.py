"""Options shared by commands, and how they become settings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..api.messages import command
from ..errors import InputError
from .output import named_home, notice

if TYPE_CHECKING:
    from ..graph.session import Session
    from ..settings.config import Settings
    from ..stores.home import Home

HomeOption = Annotated[
    str | None,
    typer.Option(
        "--home",
        help="Folder, or postgresql:// address, that holds library, journal and runs. Default: CITELOOM_HOME, else the "
        "nearest .citeloom upwards from here, else a new one here.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]
MaxCallsOption = Annotated[
    int | None,
    typer.Option("--max-calls", min=1, help="Limit on model requests; the run pauses before it exceeds it."),
]
MaxTokensOption = Annotated[
    int | None, typer.Option("--max-tokens", min=1, help="Limit on tokens; the run pauses before it exceeds it.")
]
MaxCostOption = Annotated[
    float | None,
    typer.Option(
        "--max-cost", help="Limit on cost, by the prices in the settings; the run pauses before it exceeds it."
    ),
]
StrictOption = Annotated[
    bool | None,
    typer.Option(
        "--strict/--no-strict",
        help="Leave out sentences that fail a check (they are listed) instead of marking them.",
        show_default="marked",
    ),
]
CiteRetractedOption = Annotated[
    bool | None,
    typer.Option(
        "--cite-retracted/--no-cite-retracted",
        help="Let the text cite retracted papers; otherwise they are read, with a warning, but not cited.",
        show_default="not cited",
    ),
]

# The options that are not named like the settings that they override.
_FLAGS: Final[Mapping[str, str]] = {
    "chat_model": "--model",
    "chat_base_url": "--base-url",
    "retrieval_mode": "--mode",
    "section_words": "--words",
    "max_search_iterations": "--max-searches",
}

_before_command: list[str] = []
_in_use: list[Path] = []
_given: list[str] = []


def remember_home(home: str | None) -> None:
    """Remember a `--home` given before the command."""
    _before_command[:] = [home] if home is not None else []


def resolve(home: str | None, *, to_copy: bool = False, **overrides: Any) -> tuple[Settings, Home]:
    """Settings and home of a command; names the home on stderr. Raises `ConfigurationError`.

    `to_copy` allows a folder beside CITELOOM_VECTORS, which then is that of the copy.
    """
    from ..settings.config import load_settings
    from ..stores.home import configured_home

    given = _before_command[0] if home is None and _before_command else home
    if given == "":
        raise InputError("--home is empty.", help="Name a folder or a database, or leave it out.")
    _given[:] = [given] if given else []
    flags = {name: _FLAGS.get(name, f"--{name.replace('_', '-')}") for name in ("home", *overrides)}
    settings = load_settings(home=given, flags=flags, **overrides)
    found = configured_home(settings, to_copy=to_copy)
    named_home(found.name, exists=found.exists())
    _in_use[:] = [found.root]
    return settings, found


def command_here(arguments: str) -> str:
    """A Citeloom command with these arguments, as the user can type it, on the home that was given."""
    from ..settings.key_trust import shown_address

    return command(f"--home {shlex.quote(shown_address(_given[0]))} {arguments}" if _given else arguments)


def home_in_use() -> list[Path]:
    """The folder of the home in use; None until it is known."""
    return list(_in_use)


def records_of(home: Home) -> Home:
    """The home with its runs, conversations and journal, for commands that only read these; raises `InputError`."""
    from ..stores.local.read_only_copy import readable_home

    home.require_library()
    return readable_home(home, notice, library=False, records=True)


@contextmanager
def command_session(settings: Settings, home: Home, *, create: bool = True, reading: bool = False) -> Iterator[Session]:
    """Open library, models and journal for one command; raises `InputError`.

    `reading` is for commands that change nothing: they also work on a read-only home.
    """
    from ..graph.session import open_session
    from ..stores.local.read_only_copy import readable_home

    if reading:
        home = readable_home(home, notice, library=True)
    with open_session(settings, home, create=create, on_notice=notice) as session:
        yield session
