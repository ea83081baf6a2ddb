"""Options shared by commands, their conversion to settings, and their shell completion."""

from __future__ import annotations

import contextlib
import inspect
import io
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ..api.messages import command
from ..api.run_options import FLAGS, Option
from ..errors import InputError
from .output import announce_home, notice

if TYPE_CHECKING:
    from ..api.homes import Home, Session
    from ..settings.config import Settings

HomeOption = Annotated[
    str | None,
    typer.Option(
        "--home",
        help="Folder, or postgresql:// address, that holds library, journal and runs. Default: CITELOOM_HOME, else the "
        "nearest .citeloom in this folder or its parents, else a new one here.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]
# Options named differently from the settings they override.
_FLAGS = {"retrieval_mode": "--mode", **FLAGS}

_before_command: list[str] = []
_in_use: list[Path] = []
_given: list[str] = []


def remember_home(home: str | None) -> None:
    """Remember a `--home` given before the command."""
    _before_command[:] = [home] if home is not None else []


def resolve(home: str | None, *, to_copy: bool = False, **overrides: Any) -> tuple[Settings, Home]:
    """Load settings and home; prints the home on stderr. Raises `ConfigurationError`.

    `to_copy` allows a folder with CITELOOM_VECTORS set, which then applies to the copy.
    """
    from ..api.homes import configured_home
    from ..settings.config import load_settings

    given = _before_command[0] if home is None and _before_command else home
    if given == "":
        raise InputError("--home is empty.", help="Name a folder or a database, or leave it out.")
    _given[:] = [given] if given else []
    flags = {name: _FLAGS.get(name, f"--{name.replace('_', '-')}") for name in ("home", *overrides)}
    settings = load_settings(home=given, flags=flags, **overrides)
    found = configured_home(settings, to_copy=to_copy)
    found.require_place()
    announce_home(found.name, exists=found.exists())
    _in_use[:] = [found.root]
    return settings, found


def command_on_home(arguments: str) -> str:
    """A Citeloom command as the user can type it, with the `--home` that was given."""
    from ..api.homes import shown_address

    return command(f"--home {shlex.quote(shown_address(_given[0]))} {arguments}" if _given else arguments)


def home_in_use() -> list[Path]:
    """The folder of the home in use; empty until known."""
    return list(_in_use)


def readable_records(home: Home) -> Home:
    """The home, for commands that only read runs, conversations or the journal; raises `InputError`."""
    from ..api.homes import records_home

    return records_home(home, notice)


@contextmanager
def home_session(home: str | None, *, reading: bool = False, **overrides: Any) -> Iterator[Session]:
    """Open an existing library for a command; prints the home on stderr. Raises `InputError`.

    `reading` is explained at `command_session`; `overrides` are settings.
    """
    settings, found = resolve(home, **overrides)
    with command_session(settings, found, create=False, reading=reading) as session:
        yield session


@contextmanager
def command_session(settings: Settings, home: Home, *, create: bool = True, reading: bool = False) -> Iterator[Session]:
    """Open library, models and journal for one command; raises `InputError`.

    Set `reading` for commands that change nothing: they work on read-only homes too.
    """
    from ..api.homes import open_home

    with open_home(settings, home, notice, create=create, reading=reading) as session:
        yield session


def takes_options(**groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command to take the fields of dataclasses (`api/run_options.py`) as options.

    The command gets an instance of each dataclass, as the argument named here.
    """

    def decorate(call: Callable[..., None]) -> Callable[..., None]:
        own = [item for item in inspect.signature(call, eval_str=True).parameters.values() if item.name not in groups]
        added = [option for group in groups.values() for option in _parameters(group)]

        def command(**given: Any) -> None:
            made = {
                name: group(**{item.name: given.pop(item.name) for item in fields(group)})
                for name, group in groups.items()
            }
            call(**given, **made)

        command.__name__, command.__doc__ = call.__name__, call.__doc__
        everywhere = [item for item in own if item.name in ("as_json", "home")]
        ordered = (*(item for item in own if item not in everywhere), *added, *everywhere)
        parameters = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in ordered]
        command.__annotations__ = {item.name: item.annotation for item in parameters}
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # which Typer reads
        return command

    return decorate


def _parameters(group: type[Any]) -> Iterator[inspect.Parameter]:
    """Turn a dataclass's fields into parameters."""
    types = get_type_hints(group)
    for item in fields(group):
        option: Option = item.metadata["option"]
        name = item.name.replace("_", "-")
        given = typer.Option(
            option.flag or (f"--{name}/--no-{name}" if types[item.name] == bool | None else f"--{name}"),
            help=option.help,
            min=option.least,
            max=option.most,
            show_default=option.default or item.default is not None,
        )
        annotation: Any = Annotated[types[item.name], given]
        yield inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=annotation)


def complete_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete citation keys of the library."""
    return _completed(ctx, incomplete, "papers")


def complete_runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete ids of runs."""
    return _completed(ctx, incomplete, "runs")


def complete_conversations(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete ids of conversations."""
    return _completed(ctx, incomplete, "conversations")


def _completed(ctx: typer.Context, incomplete: str, kind: str) -> list[str]:
    """Ids with this prefix; none if the home is unreadable, since shells show no errors here."""
    from ..api.homes import complete_ids, configured_home
    from ..settings.config import load_settings

    outer = ctx.find_root().params.get("home")
    with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
        home = configured_home(load_settings(home=ctx.params.get("home") or outer))
        return [name for name in complete_ids(home, kind) if name.startswith(incomplete)]
    return []
