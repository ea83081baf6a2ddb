"""export, sync-tex and verify: edited files in other formats, in a LaTeX project, and against the library."""

from __future__ import annotations

import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal

import typer

from .. import api
from ..api.messages import counted
from ..api.run_options import Shown, StyleSettings, Tracked, WordOptions, option
from ..errors import DONE, DONE_WITH_REFUSALS, InputError
from .options import command_on_home, home_session, takes_options
from .output import Printed, notice, one_line
from .sections import OverwriteOption


class ExportFiles(WordOptions, OverwriteOption):
    formats: Annotated[tuple[str, ...], Shown("--format", completes="formats")] = option(
        "Formats to write: tex, docx, odt, html, pdf or zip", value=()
    )


@takes_options(files=ExportFiles, settings=StyleSettings)
def export(
    source: Annotated[str, "A run's id, or the .md of a section or paper, edited or not.", Shown(completes="runs")],
    files: ExportFiles,
    settings: StyleSettings,
    out: Annotated[Path | None, "Folder for the files.", Shown(default="that of the .md, or this one")] = None,
) -> Printed:
    """Write a finished text, or an edited markdown file, in other formats.

    Your sentences are kept as you wrote them, and their citations are converted to the format; in docx and odt they
    can be Zotero's fields. The .json of the run must be beside a file. No model is called.

    Example: citeloom export paper/discussion.md --format docx --citations zotero
    """
    wanted = api.arguments.parse_formats(files.formats, Path())
    options = {item.name: getattr(files, item.name) for item in fields(WordOptions)}
    with home_session(**settings.changes()) as session:
        exported = api.files.export(session, source, wanted, out=out, csl=settings.csl, force=files.force, **options)
    notice(*(f"Note: {warning}" for warning in exported["warnings"]))
    return Printed(exported, lambda record: record["files"].values())


def import_document(
    file: Annotated[Path, "The .docx, .odt, .tex or .md, exported by Citeloom and edited since."],
    run: Annotated[str | None, "Its run, if the file does not name it.", Shown(completes="runs")] = None,
    tracked: Annotated[Tracked, "Tracked changes: accept, reject or ask."] = "ask",
) -> Printed:
    """Take back a text that was edited in Word, LibreOffice, LaTeX or Markdown.

    Says of each sentence whether it was kept, edited, moved, split, merged, is new or gone; every word is kept, and
    citations are found again by their fields or keys. Export, paper and the page have your text from then on. What it
    cites and says is checked by check. No model is called.

    Example: citeloom import paper/discussion.docx --tracked accept
    """
    with home_session() as session:
        try:
            imported = api.files.import_text(session, file, run=run, tracked=tracked)
        except api.files.TrackedChangesError as error:
            if not sys.stdin.isatty():
                raise
            accepted = typer.confirm(f"{error.message} Accept them?")
            imported = api.files.import_text(session, file, run=run, tracked="accept" if accepted else "reject")
    notice(*(f"Warning: {warning}" for warning in imported["warnings"]))
    notice(*(one_line(f"Comment of {comment['author']}: {comment['text']}") for comment in imported["comments"]))
    counts = ", ".join(f"{count} {state}" for state, count in imported["counts"].items())
    notice(f"{counted(sum(imported['counts'].values()), 'sentence')}: {counts}. Run {imported['run']} has your text.")
    notice(f"Check what it cites: {command_on_home('check')} {shlex.quote(str(file))}")
    return Printed(
        imported,
        lambda record: [f"{one['state']:>7}  {one_line(one['text'] or one['was'])}" for one in record["sentences"]],
    )


def verify_file(
    file: Annotated[
        Path, "A section, a paper or an answer as .json, .md, .tex, .docx, .odt or .html, or a conversation's .json."
    ],
) -> Printed:
    """Check every citation, quote and number of a result.

    Compares the text that a person reads, and its record, with the library and the experiment of the run. For .md,
    .tex, .docx and .html the record is the .json beside it; sentences that you edited may cite any evidence of the
    run. Each failure is listed as FILE:FIELD. Exit code 0 if all are correct, 4 if not, 2 if the file is not a
    result of Citeloom.

    Example: citeloom verify paper/discussion.docx
    """
    with home_session() as session:
        verified = api.files.verify(session, file)
    checked, mismatches = verified["checked"], verified["mismatches"]
    quotes, findings = counted(checked["quotes"], "citation"), counted(checked["findings"], "finding")
    numbers = counted(checked["numbers"], "number")
    counts = f"{quotes} with key and quote, the quotes of {findings}, cited or not, and {numbers} were checked"
    wrong, unchecked = len(mismatches), verified["lacks"]
    outcome = "all of these hold" if unchecked else "all hold"
    outcome = f"{wrong} {'is' if wrong == 1 else 'are'} wrong" if wrong else outcome
    notice(f"{counts}; {outcome}.")
    notice(*(f"Not checked: {count} {what}." for what, count in unchecked.items()))
    lines = [one_line(f"{file}:{item['field']}: {item['problem']}") for item in mismatches]
    return Printed(verified, lambda _: lines, DONE_WITH_REFUSALS if wrong else DONE)


def sync_tex(
    folder: Annotated[Path, "The folder of the LaTeX project, such as a git clone."],
    run: Annotated[
        list[str] | None, "Section or paper to put there; repeated. Default: those that are there already."
    ] = None,
    ours: Annotated[bool, "Overwrite edited regions; the file is copied before."] = False,
    theirs: Annotated[bool, "Take the text of edited regions into the run."] = False,
) -> Printed:
    """Keep your sections in a LaTeX project up to date.

    A section stands between '% citeloom:begin' and '% citeloom:end'; only that is ever rewritten. A new one goes behind
    a line '% citeloom:here SECTION', else into a file of its own, sections/SECTION.tex. The .bib only grows. A region
    that you edited is shown as a difference and stays. Nothing is committed or pushed. Exit code 4 if a region is in
    conflict or a file could not be written.

    Example: citeloom sync-tex ~/overleaf-clone --run discussion-1a2b
    """
    if ours and theirs:
        raise InputError("--ours and --theirs exclude each other.", help="Choose one.")
    with home_session() as session:
        side: Literal["ours", "theirs", ""] = "ours" if ours else "theirs" if theirs else ""
        synced = api.files.sync_tex(session, folder, runs=run or (), side=side)
    lines = []
    for item in synced["regions"]:
        lines.append(one_line(f"{item['file']}:{item['line']}: {item['section']} {item['state']}"))
        lines += [item["diff"]] if item["diff"] else []
        lines += [one_line(f"The file as it was: {item['backup']}")] if item["backup"] else []
    notice(*synced["notices"], *(f"Problem: {problem}" for problem in synced["problems"]))
    states = {item["state"] for item in synced["regions"]}
    if "conflict" in states:
        notice("An edited region stays: --theirs takes your text into the run, --ours overwrites it.")
    wrong = synced["problems"] or states & {"conflict", "refused"}
    return Printed(synced, lambda _: lines, DONE_WITH_REFUSALS if wrong else DONE)
