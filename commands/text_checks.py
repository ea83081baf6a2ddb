"""check, update, verify, export, import and sync-tex: compare texts with the library, and convert them."""

from __future__ import annotations

import re
import shlex
import sys
import time
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from .. import api
from ..api.messages import counted
from ..api.run_options import ModelSettings, OptionGroup, Shown, StyleSettings, Tracked, WordOptions, option
from ..errors import DONE, DONE_WITH_REFUSALS, PAUSED, InputError
from .options import JsonOption, command_on_home, complete_runs, home_session
from .output import Printed, notice, one_line, result, result_json
from .papers import plain_sentence
from .sections import OverwriteOption

FileArgument = Annotated[Path, "The text: .tex, .md, .qmd, .org, .docx, .typ or .pdf."]
WatchOption = Annotated[bool, "Check again whenever the file changes; only changed sentences are judged."]
_NAMED: Final = 6  # uncited references to name
_POLL_INTERVAL: Final = 1.0  # seconds


class CheckOptions(OptionGroup):
    experiment: Annotated[Path | None, Shown("--exp")] = option(
        "Your exp.json, whose numbers the text may state without a source."
    )
    bib: Path | None = option("The bibliography. Default: the one that the text names.")
    only: tuple[str, ...] = option("Parts to check: claims, uncited, numbers, references", value=())
    formats: Annotated[tuple[str, ...], Shown("--format")] = option(
        "Files to write into --out: html (report), docx (copy with comments), tex (copy with notes), json, sarif",
        value=(),
    )
    out: Path | None = option("Folder for the files; html if no --format is given.")
    force: bool = option("Replace an earlier copy of the text in --out.", value=False)
    fresh: bool = option("Judge again, without reusing answers.", value=False)
    look_up: bool = option("Ask metadata services whether references not in the library exist.", value=False)
    in_place_comments: bool = option(
        "Put the remarks into the .docx or .tex itself; the original is kept.", value=False
    )


def check(
    file: FileArgument,
    options: CheckOptions,
    settings: ModelSettings,
    watch: WatchOption = False,
    as_json: JsonOption = False,
) -> Printed:
    """Check your own text against the papers that it cites.

    Judges each sentence with a citation: supported, overstated, contradicted, not in the cited paper (and which of your
    papers says it), indirect, not in the library. Finds other sentences that need a citation, and papers of yours that
    provide it. Also checks numbers, units, names, quotations, references, and mentions of figures and sections. Your
    text is not changed. Without a chat model, the nearest passages are shown and no sentence is judged. A second check
    asks only about sentences that changed. Exit code 4 if something is wrong, 3 if a limit left sentences unjudged.

    Example: citeloom check paper.tex --exp exp.json --out checked --format html,tex
    """
    if watch and (as_json or options.in_place_comments):
        other = "--json" if as_json else "--in-place-comments"
        message = f"--watch only prints summaries, so it cannot be combined with {other}."
        raise InputError(message, help="Leave one of them out.")

    def check_once() -> api.checking.CheckResult:
        with home_session(**settings.changes()) as session:
            return api.checking.check_text(session, file, on_notice=notice, **vars(options))

    record = check_once()
    while watch:
        _show_check(record)
        notice(f"Watching {file}; Ctrl-C ends.")
        seen = _modified_at(file)
        while _modified_at(file) in (seen, 0):
            time.sleep(_POLL_INTERVAL)
        record = check_once()
    code = DONE if not api.checking.needs_attention(record) else DONE_WITH_REFUSALS
    return Printed(record, _show_check, code if record["complete"] else PAUSED)


def _modified_at(file: Path) -> int:
    """Return the file's modification time; 0 while an editor replaces it."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _show_check(record: api.checking.CheckResult) -> None:
    for sentence in record["sentences"]:
        lines = api.checking.problem_lines(sentence)
        if not record["model"]:
            nearest = [source["passages"][0] for source in sentence["sources"] if source["passages"]]
            lines += [f'Nearest in {item["key"]}: "{plain_sentence(item["quote"])}"' for item in nearest]
        if lines:
            result(f"{api.checking.shown_place(sentence['place'])}: {one_line(sentence['claim'])}")
            result(*(f"    {one_line(line)}" for line in lines))
    uncited = [entry["key"] for entry in record["references"] if not entry["cited"]]
    for entry in record["references"]:
        named = [found["message"] for found in entry["faults"] if found["rule"] != "entry-not-cited"]
        result(*(f"{one_line(entry['key'])}: {one_line(message)}" for message in named))
    if uncited:
        more = f" and {len(uncited) - _NAMED} more" if len(uncited) > _NAMED else ""
        result(f"Cited nowhere: {', '.join(map(one_line, uncited[:_NAMED]))}{more}.")
    result(*api.checking.summary_lines(record))
    if not record["model"]:
        notice("No model judged the sentences; set CITELOOM_CHAT_MODEL (or give --model) to have them judged.")
    notice(*(f"Warning: {line}" for line in record["warnings"]))
    usage = record["usage"]
    calls, reused = usage.get("llm_calls") or 0, usage.get("journal_hits") or 0
    if record["model"]:
        notice(f"{counted(calls, 'model call')}, {counted(reused, 'cached answer')}.")
    notice(*(f"Written: {path}" for path in record.get("files", {}).values()))
    notice(*(f"Comments were put into the text; the original is {path}" for path in record.get("kept", ())))


_LIBRARY_INTERVAL: Final = 5.0  # seconds


def update(
    settings: ModelSettings,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Ids of runs or tables. Default: all tables, and the latest run of each question and experiment.",
            autocompletion=complete_runs,
            show_default=False,
        ),
    ] = None,
    accept: Annotated[str, typer.Option(help="Ids of items to accept: 3f2a90c1,b7e41d55.", show_default=False)] = "",
    accept_all: Annotated[bool, "Accept all items."] = False,
    watch: Annotated[bool, "Compare again whenever the library changes."] = False,
    as_json: JsonOption = False,
) -> None:
    """Show which sentences, cells and answers are affected by changes of the library, and propose updates.

    Lists what is based on a removed, retracted or edited paper, and sentences for which a new paper has nearer or
    opposite words; a chat model judges them, within --max-calls. Accepting an item changes the sentence as shown (its
    run keeps the old one), asks the question again, or reads the table again. If the library has not changed, no model
    is called. Exit code 3 if a limit left sentences unjudged.

    Example: citeloom update --accept 3f2a90c1
    """
    if watch and (as_json or accept or accept_all):
        raise InputError("--watch only shows what changed.", help="Leave out --json and --accept.")
    wanted = _split_ids(accept)
    with home_session(**settings.changes()) as session:
        compare = partial(api.text_updating.update_texts, session, runs or (), on_notice=notice)
        record = compare(accept=wanted, accept_all=accept_all)
        if not as_json:
            _show_updates(record)
        asks = sys.stdin.isatty() and sys.stdout.isatty() and not (watch or as_json or wanted)
        which = "Which to accept (ids, all, or Enter for none)"
        while asks and record["items"] and (given := typer.prompt(which, default="", show_default=False).strip()):
            chosen = () if given == "all" else _split_ids(given)
            try:
                record = compare(accept=chosen, accept_all=given == "all")
                _show_accepted(record)
            except InputError as error:
                notice(str(error))
        with suppress(KeyboardInterrupt):
            while watch:
                notice("Watching the library; Ctrl-C ends.")
                version = session.library.version()
                while session.library.version() == version:
                    time.sleep(_LIBRARY_INTERVAL)
                _show_updates(compare())
    if as_json:
        result_json(record)
    if not record["complete"]:
        raise typer.Exit(PAUSED)


def _split_ids(given: str) -> list[str]:
    return given.replace(",", " ").split()


def _show_updates(record: api.text_updating.UpdateRecord) -> None:
    last = ""
    for item in record["items"]:
        if item["run"] != last:
            last = item["run"]
            result(one_line(f"{item['kind']} {last}: {item['title']}"))
        _show_update(item)
    _show_accepted(record)
    usage = record["usage"]
    calls, reused = counted(usage.get("llm_calls") or 0, "model call"), usage.get("journal_hits") or 0
    looked = f"{counted(record['compared'], 'text')} compared, {record['unchanged']} unchanged since the last time"
    notice(f"{counted(len(record['items']), 'item')} to look at; {looked}; {calls}, {reused} reused.")


def _show_accepted(record: api.text_updating.UpdateRecord) -> None:
    result(*(one_line(f"Accepted {item['id']}: {item['proposed'] or item['sentence']}") for item in record["accepted"]))
    if record["accepted"] and record["items"]:
        notice(f"{counted(len(record['items']), 'item')} left.")


def _show_update(item: api.text_updating.UpdateItem) -> None:
    judged = "" if item["judged"] or item["kind"] == "table" else ", not judged"
    result(one_line(f"  {item['id']} [{item['reason']}{judged}] {item['section']}: {item['sentence']}"))
    result(one_line(f"     {item['detail']}"))
    if passage := item["passage"]:
        page = "" if passage["page"] is None else f", p. {passage['page']}"
        result(one_line(f"     {passage['key']}{page}: “{passage['shown']}”"))
    if item["kind"] == "research" or item["action"] == "read again":
        result(f"     accepting {'asks it again' if item['kind'] == 'research' else 'reads what changed'}")
    elif item["proposed"]:
        result(one_line(f"     -> {item['proposed']}"))
    elif item["action"] == "drop":
        result("     accepting leaves it out")


class ExportFiles(WordOptions, OverwriteOption):
    formats: Annotated[tuple[str, ...], Shown("--format", completes="formats")] = option(
        "Formats to write: tex, docx, odt, html, pdf or zip", value=()
    )


def export(
    source: Annotated[str, "A run's id, or the .md of a section or paper, edited or not.", Shown(completes="runs")],
    files: ExportFiles,
    settings: StyleSettings,
    out: Annotated[Path | None, "Folder for the files.", Shown(default="that of the .md, or this one")] = None,
) -> Printed:
    """Write a finished text, or an edited markdown file, in other formats.

    Your sentences are kept as you wrote them, and their citations are converted to the format; in docx and odt they
    can be Zotero fields. A markdown file needs its run's .json beside it. No model is called. Exit code 4 if a format
    could not be written.

    Example: citeloom export paper/discussion.md --format docx --citations zotero
    """
    wanted = api.arguments.parse_formats(files.formats, Path())
    options = {item.name: getattr(files, item.name) for item in fields(WordOptions)}
    with home_session(**settings.changes()) as session:
        exported = api.files.export(session, source, wanted, out=out, csl=settings.csl, force=files.force, **options)
    notice(*(f"Note: {warning}" for warning in exported["warnings"]), *(f"Error: {why}" for why in exported["failed"]))
    code = DONE_WITH_REFUSALS if exported["failed"] else DONE
    return Printed(exported, lambda record: record["files"].values(), code)


def import_document(
    file: Annotated[Path, "The .docx, .odt, .tex or .md, exported by Citeloom and edited since."],
    run: Annotated[str | None, "Its run, if the file does not name it.", Shown(completes="runs")] = None,
    tracked: Annotated[Tracked, "Tracked changes: accept, reject or ask."] = "ask",
) -> Printed:
    """Import a text that was edited in Word, LibreOffice, LaTeX or Markdown.

    Shows for each sentence whether it was kept, edited, moved, split, merged, is new or gone. Every word is kept, and
    citations are recognised by their fields or keys. Export, paper and the page use your text from then on; 'check'
    checks it. No model is called.

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
    notice(*(one_line(f"Comment by {comment['author']}: {comment['text']}") for comment in imported["comments"]))
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
    notice(*(f"Not checked: {counted(count, _singular(what), what)}." for what, count in unchecked.items()))
    lines = [one_line(f"{file}:{item['field']}: {item['problem']}") for item in mismatches]
    return Printed(verified, lambda _: lines, DONE_WITH_REFUSALS if wrong else DONE)


def _singular(what: str) -> str:
    """Put a description of unchecked items into the singular: "number that was found nowhere"."""
    return re.sub(r"s\b", "", what, count=1).replace(" were ", " was ").replace(" their ", " its ")


def sync_tex(
    folder: Annotated[Path, "The folder of the LaTeX project, such as a git clone."],
    run: Annotated[
        list[str] | None, "Section or paper to insert; may be repeated. Default: those already in the project."
    ] = None,
    ours: Annotated[bool, "Overwrite edited regions, after copying the file."] = False,
    theirs: Annotated[bool, "Import the text of edited regions into the run."] = False,
) -> Printed:
    """Keep your sections in a LaTeX project up to date.

    Only regions between '% citeloom:begin' and '% citeloom:end' are ever rewritten. A new section is inserted after a
    line '% citeloom:here SECTION', else written to the new file sections/SECTION.tex. The .bib only grows. A region
    that you edited is kept, and the difference shown. Nothing is committed or pushed. Exit code 4 if a region is in
    conflict or a file could not be written.

    Example: citeloom sync-tex ~/overleaf-clone --run discussion-1a2b
    """
    if ours and theirs:
        raise InputError("--ours and --theirs cannot be combined.", help="Choose one.")
    with home_session() as session:
        side: Literal["ours", "theirs", ""] = "ours" if ours else "theirs" if theirs else ""
        synced = api.files.sync_tex(session, folder, runs=run or (), side=side)
    lines = []
    for item in synced["regions"]:
        lines.append(one_line(f"{item['file']}:{item['line']}: {item['section']} {item['state']}"))
        lines += [item["diff"]] if item["diff"] else []
        lines += [one_line(f"Copy of the file before the change: {item['backup']}")] if item["backup"] else []
    notice(*synced["notices"], *(f"Problem: {problem}" for problem in synced["problems"]))
    states = {item["state"] for item in synced["regions"]}
    if "conflict" in states:
        notice("An edited region was kept: --theirs imports your text into the run, --ours overwrites it.")
    wrong = synced["problems"] or states & {"conflict", "refused"}
    return Printed(synced, lambda _: lines, DONE_WITH_REFUSALS if wrong else DONE)
