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
    papers_only: Annotated[
        bool, typer.Option("--papers-only", help="Leave runs, conversations, the journal and metadata where they are.")
    ] = False,
    to_vectors: Annotated[
        str | None,
        typer.Option(
            "--to-vectors",
            help="The Milvus that searches the other home, if that is in PostgreSQL.",
            show_default="CITELOOM_VECTORS, if this home is a folder",
        ),
    ] = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Copy a home to another one, without embedding a text or paying for an answer again.

    Papers, runs with their edits and checkpoints, conversations, the journal
    and what services said of papers are copied, and compared at the end; the
    papers' own files stay where they are. An interrupted copy continues when
    the command is given again. A home that holds anything else is refused.
    """
    from ..errors import InputError
    from ..ingestion.home_copy import copy_home, copy_library
    from ..settings.addresses import DatabaseUrl, parse_home, parse_vectors
    from ..stores.home import find_home
    from ..stores.library import Library
    from ..stores.local.read_only_copy import readable_home

    settings, found = resolve(home, to_copy=True)
    here_in_folder = not isinstance(found.address, DatabaseUrl)
    vectors = parse_vectors(to_vectors) or (settings.vectors if here_in_folder else None)
    address = parse_home(to)
    in_database = isinstance(address, DatabaseUrl)
    if to_vectors and not in_database:
        raise InputError(f"--to-vectors: the other home, {to}, is a folder.", help="Milvus searches a database only.")
    other = find_home(address, vectors=vectors if in_database else None)
    if other.address == found.address:
        raise InputError(f"{found.name}: is the home itself.", help="Give another one as --to.")
    found.require_library()
    readable = readable_home(found, notice, library=True, records=not papers_only)
    records: dict[str, int] = {}
    with command_session(settings, readable, create=False, reading=True) as session:
        source = session.library
        with closing(Library.open(other, source.embedding, on_notice=notice)) as target:
            if papers_only:
                report = run_async(copy_library(source, target, lambda key: notice(f"  copied {key}")))
            else:
                copied = run_async(copy_home(source, target, lambda line: notice(f"  {line}")))
                report, records = copied.papers, copied.records | {"checkpoints": copied.checkpoints}
    if as_json:
        result_json(asdict(report) | {"to": str(other.name), "records": records})
        return
    held = f"{counted(report.copied, 'paper')} copied, {report.present} there already"
    result(f"{held}; {counted(report.chunks, 'chunk')} compared, version {report.version}.")
    if records:
        shown = (("runs", "run"), ("conversations", "conversation"), ("answers", "cached answer"))
        counts = ", ".join(counted(records[name], word) for name, word in shown)
        result(f"{counts} and {counted(records['checkpoints'], 'checkpoint')} there and compared.")
