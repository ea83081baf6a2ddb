"""verify: checks a result, and the text of its files, against its record and the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import DONE_WITH_REFUSALS
from .options import HomeOption, JsonOption, command_session, resolve
from .output import notice, result, result_json
from .terminal_text import one_line


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("verify", rich_help_panel="Library")(verify_file)


def verify_file(
    file: Annotated[
        Path,
        typer.Argument(
            help="A section, a paper or an answer as .json, .md, .tex, .docx or .html, or a conversation's .json."
        ),
    ],
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Check every citation, quote and number of a result.

    Compares the text that a person reads, and its record, with the library. For .md, .tex, .docx and .html the record
    is the .json beside it; sentences that you edited may cite what the run found. Each failure is listed as
    FILE:FIELD. Exit code 0 if all are correct, 4 if not, 2 if the file is not a result of Citeloom.

    Example: citeloom verify paper/discussion.docx
    """
    from ..api.files import verify

    settings, found = resolve(home)
    with command_session(settings, found, create=False) as session:
        verified = verify(session, file)
    checked, mismatches = verified["checked"], verified["mismatches"]
    counts = f"{checked['quotes']} quotes, {checked['keys']} cited keys and {checked['numbers']} numbers were checked"
    for what, count in verified["lacks"].items():
        notice(f"Not checked: {count} {what}.")
    wrong = len(mismatches)
    notice(f"{counts}; {wrong} {'does' if wrong == 1 else 'do'} not hold." if wrong else f"{counts}; all hold.")
    if as_json:
        result_json(verified)
    else:
        for item in mismatches:
            result(one_line(f"{file}:{item['field']}: {item['problem']}"))
    if wrong:
        raise typer.Exit(DONE_WITH_REFUSALS)
