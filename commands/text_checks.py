"""check: compare a text of the user's own with the papers that it cites, sentence by sentence."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from ..api.messages import counted
from ..api.run_options import ModelSettings
from ..errors import DONE_WITH_REFUSALS, PAUSED, InputError
from .options import HomeOption, JsonOption, command_session, resolve, takes_options
from .output import notice, result, result_json
from .terminal_text import one_line

if TYPE_CHECKING:
    from ..api.checking import CheckFormat, CheckPart, CheckResult

FileArgument = Annotated[Path, typer.Argument(help="The text: .tex, .md, .docx, .typ or .pdf.", show_default=False)]
ExperimentOption = Annotated[
    Path | None,
    typer.Option("--exp", help="Your exp.json, whose numbers the text may state without a source.", show_default=False),
]
BibOption = Annotated[
    Path | None,
    typer.Option("--bib", help="The bibliography. Default: the one that the text names.", show_default=False),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", help="Parts to check: claims, uncited, numbers, references; separated by commas."),
]
FormatOption = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="Files to write into --out: html (report), docx (copy with comments), tex (copy with notes), json, sarif.",
    ),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="Folder for the files; html if no --format is given.", show_default=False)
]
WatchOption = Annotated[
    bool, typer.Option("--watch", help="Check again whenever the file changes; only changed sentences are judged.")
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Judge again, without reusing answers.")]
LookUpOption = Annotated[
    bool, typer.Option("--look-up", help="Ask metadata services whether entries that the library lacks exist.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an earlier copy of the text in --out.")]
InPlaceOption = Annotated[
    bool,
    typer.Option("--in-place-comments", help="Put the remarks into the .docx or .tex itself; the original is kept."),
]
_NAMED: Final = 6  # uncited entries
_POLL_INTERVAL: Final = 1.0  # seconds


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("check", rich_help_panel="Write")(check)


@takes_options(settings=ModelSettings)
def check(
    file: FileArgument,
    experiment: ExperimentOption = None,
    bib: BibOption = None,
    only: OnlyOption = None,
    formats: FormatOption = None,
    out: OutOption = None,
    force: ForceOption = False,
    fresh: FreshOption = False,
    look_up: LookUpOption = False,
    watch: WatchOption = False,
    in_place: InPlaceOption = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    *,
    settings: ModelSettings,
) -> None:
    """Check a text of your own against the papers that it cites.

    For each sentence with a citation: supported, overstated, contradicted, not in the cited paper (and which of your
    papers says it), indirect, not in the library. For the others: which need a citation, and which of your papers has
    it. Numbers, units, names, quotations, the reference list, and figures and sections that are pointed to. Nothing is
    changed. Without a chat model, the nearest passages are shown and no sentence is judged. A second check asks only
    about sentences that changed. Exit code 4 if something is wrong, 3 if a limit left sentences unjudged.

    Example: citeloom check paper.tex --exp exp.json --out checked --format html,tex
    """
    from ..api.checking import needs_attention

    if watch and (as_json or in_place):
        other = "--json" if as_json else "--in-place-comments"
        raise InputError(f"--watch only prints summaries, so {other} has no place.", help="Leave one of them out.")
    parts, wanted = _names(only), _names(formats)

    def checked() -> CheckResult:
        from ..api.checking import check_text

        given, found = resolve(home, **settings.changes())
        with command_session(given, found, create=False) as session:
            return check_text(
                session,
                file,
                experiment=experiment,
                bib=bib,
                only=cast("list[CheckPart]", parts),
                fresh=fresh,
                look_up=look_up,
                out=out,
                formats=cast("list[CheckFormat]", wanted),
                force=force,
                in_place_comments=in_place,
                on_notice=notice,
            )

    record = checked()
    while watch:
        _show(record)
        notice(f"Watching {file}; Ctrl-C ends.")
        seen = _stamp(file)
        while _stamp(file) in (seen, 0):
            time.sleep(_POLL_INTERVAL)
        record = checked()
    if as_json:
        result_json(record)
    else:
        _show(record)
    if not record["complete"]:
        raise typer.Exit(PAUSED)
    if needs_attention(record):
        raise typer.Exit(DONE_WITH_REFUSALS)


def _names(given: list[str] | None) -> list[str]:
    """The values of a repeatable option, each of which may hold several, separated by commas."""
    return [name.strip() for item in given or () for name in item.split(",") if name.strip()]


def _stamp(file: Path) -> int:
    """When the file was changed last; 0 while an editor replaces it."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _show(record: CheckResult) -> None:
    from ..api.checking import problem_lines, shown_place, summary_lines

    for sentence in record["sentences"]:
        lines = problem_lines(sentence)
        if lines:
            result(f"{shown_place(sentence['place'])}: {one_line(sentence['claim'])}")
            for line in lines:
                result(f"    {one_line(line)}")
    uncited = [entry["key"] for entry in record["references"] if not entry["cited"]]
    for entry in record["references"]:
        for found in entry["faults"] if entry["cited"] else ():
            result(f"{one_line(entry['key'])}: {one_line(found['message'])}")
    if uncited:
        more = f" and {len(uncited) - _NAMED} more" if len(uncited) > _NAMED else ""
        result(f"Cited nowhere: {', '.join(map(one_line, uncited[:_NAMED]))}{more}.")
    for line in summary_lines(record):
        result(line)
    if not record["model"]:
        notice("No model judged the sentences; set CITELOOM_CHAT_MODEL (or give --model) to have them judged.")
    for line in record["warnings"]:
        notice(f"Warning: {line}")
    usage = record["usage"]
    calls, reused = usage.get("llm_calls") or 0, usage.get("journal_hits") or 0
    if record["model"]:
        notice(f"{counted(calls, 'model call')}, {counted(reused, 'cached answer')}.")
    for path in record.get("files", {}).values():
        notice(f"Written: {path}")
    for path in record.get("kept", ()):
        notice(f"Comments were put into the text; as it was: {path}")
