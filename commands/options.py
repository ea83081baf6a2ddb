"""Options shared by commands: conversion to settings, completion, and hints after a failed command."""

from __future__ import annotations

import contextlib
import errno
import functools
import inspect
import io
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import typer

from .. import api
from ..api.messages import adapt_help, command, given_command, program
from ..api.run_options import FLAGS, Shown, shown_options, spread_options
from ..errors import CiteloomError, InputError, causes
from .output import Printed, notice

if TYPE_CHECKING:
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
FILE_FORMATS: Final = ("md", "tex", "docx", "odt", "html", "pdf", "zip")
_CREATING: Final = frozenset({"add", "ingest", "serve", "sync"})  # commands

homes_from_flags: Final[list[str]] = []  # the `--home` that was given, if any
homes_in_use: Final[list[Path]] = []


def remember_home(home: str | None) -> None:
    homes_from_flags[:] = [home] if home is not None else []


def command_group(help: str) -> typer.Typer:
    return typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=help)


def as_command(call: Callable[..., Printed | None]) -> Callable[..., None]:
    """Make a Typer command of a function; adds `--home` and, if it returns `Printed`, `--json`.

    In `Annotated[type, text, Shown(...)]`, the text is the parameter's help and `Shown` how it is displayed. A
    parameter that is an option group becomes an option for each of its fields.
    """
    call = spread_options(call, _option_parameters, _split_values)

    @functools.wraps(call)
    def run(*, home: str | None = None, **given: Any) -> None:
        if home is not None:
            remember_home(home)
        as_json = given["as_json"] if "as_json" in own.parameters else given.pop("as_json", False)
        if (printed := call(**given)) is not None:
            printed.print_and_exit(as_json=as_json)

    own = inspect.signature(call, eval_str=True)
    if "home" in own.parameters:  # the callback of a group
        return call
    parameters = {name: _with_help(item) for name, item in own.parameters.items()}
    further: dict[str, Any] = {"as_json": JsonOption} if own.return_annotation is Printed else {}
    for name, annotation in {**further, "home": HomeOption}.items():
        default = None if name == "home" else False
        item = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        parameters.setdefault(name, item)
    run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]  # for Typer
    run.__annotations__ = {name: item.annotation for name, item in parameters.items()}
    return run


def _with_help(item: inspect.Parameter) -> inspect.Parameter:
    """Make a command's parameter keyword-only; if its annotation has a help text, an option or argument as well."""
    item = item.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    kind, *beside = get_args(item.annotation) or (item.annotation,)
    if not beside or not isinstance(beside[0], str) or get_origin(item.annotation) is not Annotated:
        return item
    shown = next((mark for mark in beside if isinstance(mark, Shown)), Shown())
    flag = shown.flag or (f"--{item.name.replace('_', '-')}" if item.default is False else "")
    completes, default = _COMPLETIONS.get(shown.completes), shown.default or True
    about: dict[str, Any] = {"help": beside[0], "autocompletion": completes, "show_default": default}
    required = item.default is inspect.Parameter.empty
    given: Any = typer.Argument(**about) if required else typer.Option(*filter(None, [flag]), **about)
    return item.replace(annotation=Annotated[kind, given])


def resolve(
    *, to_copy: bool = False, early: Literal["search", "answer"] | None = None, **overrides: Any
) -> tuple[Settings, api.homes.Home]:
    """Load settings and home, and print the home.

    `to_copy` allows a folder with CITELOOM_VECTORS, which then applies to the copy. With `early`, the models that a
    search or an answer needs are loaded in the background.
    """
    from ..settings.config import load_settings

    given = next(iter(homes_from_flags), None)
    if given == "":
        raise InputError("--home is empty.", help="Name a folder or a database, or leave it out.")
    flags = {name: _FLAGS.get(name, f"--{name.replace('_', '-')}") for name in ("home", *overrides)}
    settings = load_settings(home=given, flags=flags, **overrides)
    place = str(settings.home)
    if early and (settings.home is None or "://" in place or Path(place).exists()):
        api.early_loading.load_early(settings, early)
    found = api.homes.configured_home(settings, to_copy=to_copy)
    found.require_place()
    new = given_command() in _CREATING and not found.exists()
    notice(f"Home: {found.name}{' (new)' if new else ''}")
    homes_in_use[:] = [found.root]
    return settings, found


def command_on_home(arguments: str) -> str:
    """Return a Citeloom command as the user can type it, with the given `--home`."""
    named = "".join(f"--home {shlex.quote(api.homes.shown_address(home))} " for home in homes_from_flags)
    return command(named + arguments)


@contextmanager
def home_session(
    *, reading: bool = False, early: Literal["search", "answer"] | None = None, **overrides: Any
) -> Iterator[api.homes.Session]:
    """Open an existing library for a command; prints the home on stderr. Raises `InputError`.

    `reading` also accepts a read-only home; `early` is as in `resolve`, and `overrides` are settings.
    """
    settings, found = resolve(early=early, **overrides)
    with api.homes.open_home(settings, found, notice, create=False, reading=reading) as session:
        yield session


def _option_parameters(group: type) -> Iterator[inspect.Parameter]:
    """Turn a dataclass's fields into parameters; several values are separated by commas or repeated."""
    types = get_type_hints(group)
    for item in fields(group):
        kind, shown, said = types[item.name], shown_options(group)[item.name], item.metadata["description"]
        several, name = get_origin(kind) is tuple, item.name.replace("_", "-")
        two_sided = kind == bool | None or item.default is True
        given = typer.Option(
            shown.flag or (f"--{name}/--no-{name}" if two_sided else f"--{name}"),
            help=f"{said.rstrip('.')}; may be repeated{' or comma-separated' * shown.by_comma}." if several else said,
            min=item.metadata.get("ge"),
            max=item.metadata.get("le"),
            show_default=shown.default or not (item.default is None or several),
            autocompletion=_COMPLETIONS.get(shown.completes),
        )
        if several or any(get_origin(each) is Literal for each in get_args(kind)):
            kind = list[str] | None if several else str | None  # the settings name the values of a choice
        annotation: Any = Annotated[kind, given]
        default = None if several else item.default
        yield inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _split_values(group: type, item: Field[Any], given: Any) -> Any:
    """Split the values of a repeatable option at commas; raises `InputError` for an empty option."""
    if item.default != ():
        return given
    shown = shown_options(group)[item.name]
    values = [name for value in given or () for name in (value.split(",") if shown.by_comma else [value])]
    names = [name.strip() for name in values if name.strip()]
    if given and not names:
        flag = shown.flag or f"--{item.name}"
        raise InputError(f"{flag} is empty.", help="Give it a value, or leave it out.")
    return tuple(dict.fromkeys(names))


def _complete_ids(kind: str) -> Callable[[typer.Context, str], list[str]]:
    """Return a completion function for ids of this kind; it offers none if the home is unreadable."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from ..settings.config import load_settings

        outer = ctx.find_root().params.get("home")
        with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
            home = api.homes.configured_home(load_settings(home=ctx.params.get("home") or outer))
            return [name for name in api.homes.complete_ids(home, kind) if name.startswith(incomplete)]
        return []

    return complete


complete_keys, complete_runs, complete_conversations = map(_complete_ids, ("papers", "runs", "conversations"))


def complete_formats(incomplete: str) -> list[str]:
    return [name for name in FILE_FORMATS if name.startswith(incomplete)]


_COMPLETIONS: Final[dict[str, Callable[..., Any]]] = {
    "papers": complete_keys,
    "runs": complete_runs,
    "conversations": complete_conversations,
    "formats": complete_formats,
}


_UNEXPECTED: Final = "Got unexpected extra argument"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# With less free space, SQLite and Chroma fail with errors that do not mention the disk.
_TOO_LITTLE: Final = 2 * 1024 * 1024


def disk_full(error: BaseException, places: Sequence[Path]) -> str | None:
    """Return a one-line message if a full disk caused the error; `places` are where the command writes."""
    links = list(causes(error))
    # Our own errors are reported as such even if the disk is full; errors of libraries may come from the full disk.
    ours_alone = isinstance(error, CiteloomError) and len(links) == 1
    full = [] if ours_alone else [place for place in places if _free(place) < _TOO_LITTLE]
    said = any(getattr(link, "errno", 0) in _FULL or "database or disk is full" in str(link) for link in links)
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
    """Return the command line to run again, from `arguments` (program first), with a higher limit if one was hit."""
    given = list(arguments[1:])
    flag, enough = getattr(error, "flag", None), getattr(error, "enough", None)
    if isinstance(flag, str) and isinstance(enough, int | float):
        before = ["", *given]
        kept = zip(before, given, strict=False)
        given = [item for last, item in kept if last != flag and item != flag and not item.startswith(f"{flag}=")]
        given += [flag, f"{enough:.10g}"]
    return " ".join([program(arguments), *map(shlex.quote, given)])


def multi_value_hint(error: Any, arguments: Sequence[str]) -> str:
    """Return a hint if a usage error was caused by several values after a repeatable option, else ""."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    if command is None or not error.format_message().startswith(_UNEXPECTED):
        return ""
    repeatable = {name for option in command.params if getattr(option, "multiple", False) for name in option.opts}
    followed_by_two = (
        name
        for name, *values in zip(arguments, arguments[1:], arguments[2:], strict=False)
        if name.startswith("--") and not any(value.startswith("-") for value in values)
    )
    return next((one_value_hint(name) for name in followed_by_two if name in repeatable), "")


def one_value_hint(option: str) -> str:
    return f" Separate several values of {option} by commas."


def use_argv_name(command: Any) -> None:
    """Use the program name as started in the help examples of a command and its subcommands."""
    for text in ("help", "short_help", "epilog"):
        if written := getattr(command, text, None):
            setattr(command, text, adapt_help(written))
    for below in getattr(command, "commands", {}).values():
        use_argv_name(below)
