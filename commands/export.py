"""export: writes Word, LaTeX, HTML or PDF of a text that was edited in its markdown file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..api.run_options import StyleSettings
from ..errors import InputError
from .options import HomeOption, JsonOption, command_session, resolve, takes_options
from .output import notice, result, result_json
from .sections import FileFormat, ForceOption


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("export", rich_help_panel="Write")(export)


@takes_options(settings=StyleSettings)
def export(
    file: Annotated[Path, typer.Argument(help="The .md of a section or a paper, edited or not.", show_default=False)],
    formats: Annotated[list[FileFormat], typer.Option("--format", help="Format to write beside it; can be repeated.")],
    force: ForceOption = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    *,
    settings: StyleSettings,
) -> None:
    """Write the text of an edited markdown file in other formats.

    Your sentences are kept as you wrote them; citations in them, in the style of the file, become citations of the
    format. The .json of the run must be beside the file. Nothing is asked of a model.

    Example: citeloom export paper/discussion.md --format docx
    """
    wanted = [name.value for name in dict.fromkeys(formats) if name is not FileFormat.MD]
    if not wanted:
        raise InputError("--format md: the file is markdown already.", help="Give tex, docx, html, pdf or zip.")
    from ..api.arguments import formats_of
    from ..api.files import export as export_file

    current, found = resolve(home, **settings.changes())
    found.require_library()
    with command_session(current, found, create=False) as session:
        exported = export_file(session, file, formats_of(wanted, file.parent), csl=settings.csl, force=force)
    for warning in exported["warnings"]:
        notice(f"Note: {warning}")
    result_json(exported) if as_json else result("\n".join(exported["files"].values()))
