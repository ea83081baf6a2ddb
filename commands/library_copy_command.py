"""library copy: moves a library between folders and databases."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import Annotated

import typer

from ..models.concurrency import run_async
from ..plurals import counted
from .options import HomeOption, JsonOption, command_session, resolve
from .output import notice, result, result_json

library_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Move a whole library.")


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(library_app, name="library", rich_help_panel="Library")


@library_app.callback()
def _group() -> None:
    """Move a whole library."""


@library_app.command("copy")
def copy(
    to: Annotated[
        str, typer.Option("--to", help="The other home: a folder, or a postgresql:// address.", show_default=False)
    ],
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Copy all papers to another home, without embedding anything again.

    An interrupted copy continues when the command is given again. Runs,
    conversations, the journal and what services said of papers stay where they are.
    """
    from ..database_url import home_of
    from ..errors import InputError
    from ..ingestion.library_copy import copy_library
    from ..stores.home import find_home
    from ..stores.library import Library

    settings, found = resolve(home)
    other = find_home(home_of(to))
    if other.address == found.address:
        raise InputError(f"{found.name}: is the home itself.", help="Give another one as --to.")
    with command_session(settings, found, create=False, reading=True) as session:
        embedding = session.library.embedding
        with closing(Library.open(other, embedding, on_notice=notice)) as target:
            report = run_async(copy_library(session.library, target, lambda key: notice(f"  copied {key}")))
    if as_json:
        result_json(asdict(report) | {"to": str(other.name)})
        return
    held = f"{counted(report.copied, 'paper')} copied, {report.present} there already"
    result(f"{held}; {counted(report.chunks, 'chunk')} compared, version {report.version}.")
