"""export: convert an edited markdown file to other formats; verify: check files against the library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..api.messages import counted
from ..api.run_options import Shown, StyleSettings, option
from ..errors import DONE, DONE_WITH_REFUSALS
from .options import home_session, takes_options
from .output import Printed, notice
from .sections import OverwriteOption
from .terminal_text import one_line


@dataclass(frozen=True, kw_only=True)
class ExportOptions(OverwriteOption):
    formats: Annotated[tuple[str, ...], Shown("--format", completes="formats")] = option(
        "Formats to write: tex, docx, html, pdf or zip", value=()
    )


@takes_options(files=ExportOptions, settings=StyleSettings)
def export(
    file: Annotated[Path, "The .md of a section or a paper, edited or not."],
    files: ExportOptions,
    settings: StyleSettings,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files.", show_default="the folder of the .md")
    ] = None,
) -> Printed:
    """Write the text of an edited markdown file in other formats.

    Your sentences are kept as you wrote them, and their citations are converted to the format. The .json of the run
    must be beside the file. No model is called.

    Example: citeloom export paper/discussion.md --format docx
    """
    from ..api.arguments import parse_formats
    from ..api.files import export as export_file

    wanted = parse_formats(files.formats, file.parent)
    with home_session(**settings.changes()) as session:
        exported = export_file(session, file, wanted, out=out, csl=settings.csl, force=files.force)
    for warning in exported["warnings"]:
        notice(f"Note: {warning}")
    return Printed(exported, lambda record: record["files"].values())


def verify_file(
    file: Annotated[
        Path, "A section, a paper or an answer as .json, .md, .tex, .docx or .html, or a conversation's .json."
    ],
) -> Printed:
    """Check every citation, quote and number of a result.

    Compares the text that a person reads, and its record, with the library and the experiment of the run. For .md,
    .tex, .docx and .html the record is the .json beside it; sentences that you edited may cite any evidence of the
    run. Each failure is listed as FILE:FIELD. Exit code 0 if all are correct, 4 if not, 2 if the file is not a
    result of Citeloom.

    Example: citeloom verify paper/discussion.docx
    """
    from ..api.files import verify

    with home_session() as session:
        verified = verify(session, file)
    checked, mismatches = verified["checked"], verified["mismatches"]
    quotes, findings = counted(checked["quotes"], "citation"), counted(checked["findings"], "finding")
    numbers = counted(checked["numbers"], "number")
    counts = f"{quotes} with key and quote, the quotes of {findings}, cited or not, and {numbers} were checked"
    wrong, unchecked = len(mismatches), verified["lacks"]
    outcome = (
        f"{wrong} {'is' if wrong == 1 else 'are'} wrong" if wrong else "all of these hold" if unchecked else "all hold"
    )
    notice(f"{counts}; {outcome}.")
    for what, count in unchecked.items():
        notice(f"Not checked: {count} {what}.")
    lines = [one_line(f"{file}:{item['field']}: {item['problem']}") for item in mismatches]
    return Printed(verified, lambda _: lines, DONE_WITH_REFUSALS if wrong else DONE)
