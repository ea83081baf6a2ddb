"""export: writes Word, LaTeX, HTML or PDF of a text that was edited in its markdown file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..models.concurrency import run_async
from .options import HomeOption, JsonOption, command_session, resolve
from .output import notice, result, result_json
from .runs import registered
from .sections import CslOption, FileFormat, ForceOption


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("export", rich_help_panel="Write")(export)


def export(
    file: Annotated[Path, typer.Argument(help="The .md of a section or a paper, edited or not.", show_default=False)],
    formats: Annotated[list[FileFormat], typer.Option("--format", help="Format to write beside it; can be repeated.")],
    csl: CslOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Write the text of an edited markdown file in other formats.

    Your sentences are kept as you wrote them; citations in them, in the style of the file, become citations of the
    format. The .json of the run must be beside the file. Nothing is asked of a model.

    Example: citeloom export paper/discussion.md --format docx
    """
    wanted = [name.value for name in dict.fromkeys(formats) if name is not FileFormat.MD]
    if not wanted:
        raise InputError("--format md: the file is markdown already.", help="Give tex, docx, html, pdf or zip.")
    paths, warnings = run_async(_export(file, wanted, csl, home, force=force))
    for warning in warnings:
        notice(f"Note: {warning}")
    if as_json:
        result_json({"files": {path.suffix[1:]: str(path) for path in paths}, "warnings": warnings})
    else:
        result("\n".join(map(str, paths)))


async def _export(
    file: Path, wanted: list[str], csl: str | None, home: str | None, *, force: bool
) -> tuple[list[Path], list[str]]:
    from ..citations.export.pandoc_formats import FORMATS
    from ..runs.edited_files import export_edited

    thread = _thread_of(file)
    settings, found = resolve(home, csl=csl)
    found.require_library()
    run = await asyncio.to_thread(registered(found).get, thread)
    with command_session(settings, found, create=False) as session:
        formats = [name for name in FORMATS if name in wanted]
        return await export_edited(file, run, formats, session, csl=csl, force=force)


def _thread_of(file: Path) -> str:
    """The run that wrote the file, by the record beside it."""
    record = file.with_suffix(".json")
    if file.suffix != ".md" or not file.is_file():
        raise InputError(f"{file}: is no markdown file.", help="Give the .md of a section or a paper.")
    try:
        found: Any = json.loads(record.read_text("utf-8"))["thread_id"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{record}: is not the record of {file.name} ({type(error).__name__}).",
            help="Keep the .json that was written with the .md beside it.",
        ) from error
    return str(found)
