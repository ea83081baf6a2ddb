"""runs: list, show, answer, resume and delete runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

from .. import api
from ..api import blocking, messages
from ..api.run_options import RunLimits, Shown
from ..errors import InputError
from .options import JsonOption, command_group, resolve, takes_options
from .output import Columns, Printed, notice, one_line, result, result_json
from .run_display import end_incomplete, read_json, run_steered
from .sections import OutOption, RunFiles

runs_app = command_group("List, show, answer, resume and delete runs.")

_FIRST_IDS: Final = 5
_MAX_QUERY: Final = 160  # characters
IdArgument = Annotated[str, "Id of the run, or a prefix of it.", Shown(completes="runs")]


@runs_app.command("list")
def list_all() -> Printed:
    """List all runs, the latest first."""
    records = api.stored_runs.list_runs(api.homes.records_home(resolve()[1], notice))
    columns: Columns = {
        "run": "thread_id",
        "status": lambda record: "waiting for you" if record["status"] == "asking" else record["status"],
        "last": lambda record: when(record["updated_at"]),
        "subject": "title",
        "detail": "detail",
    }
    return Printed.listed(records, "run", columns, ("subject", "detail"))


@runs_app.command("show")
def show_run(run_id: IdArgument) -> Printed:
    """Show one run: status, what it asks you, searches, and its text if finished."""
    home = api.homes.records_home(resolve()[1], notice)
    return Printed(blocking.run_async(api.stored_runs.run_details(run_id, home)), _show_run)


def _show_run(record: api.results.RunDetails) -> None:
    detail = f" ({record['detail']})" if record["detail"] else ""
    result(one_line(f"{record['thread_id']}: {record['status']}{detail}"))
    of = "research" if record["section"] == "research" else f"{record['section']} of"
    started, updated = when(record["started_at"]), when(record["updated_at"])
    result(f"{of}: {one_line(record['title'])}\nstarted {started}, updated {updated}\n")
    if asked := record["waiting"]:
        result(f"It waits for you ({asked['ask']}: {asked['summary']}):\n{asked['about']}\n")
        result(f"To answer it: {messages.command('runs answer ' + record['thread_id'])}\n")
    for query in record["queries"]:
        ids = query["evidence_ids"]
        named = f"{', '.join(ids[:_FIRST_IDS])}{', ...' if len(ids) > _FIRST_IDS else ''}"
        found = f"{messages.counted(len(ids), 'finding')} ({named})" if ids else "nothing found"
        said = messages.shorten(query["query"], _MAX_QUERY)
        result(one_line(f"[{query['origin']}] {said} -> {found}"))
    if record["result"]:
        result(f"\n{record['result']['text']}")


@runs_app.command("resume")
@takes_options(files=RunFiles, limits=RunLimits)
def resume_run(
    run_id: IdArgument, files: RunFiles, limits: RunLimits, out: OutOption = Path(), as_json: JsonOption = False
) -> None:
    """Resume a paused or killed run."""
    _resume(run_id, files.output(out), limits, as_json=as_json)


@runs_app.command("answer")
@takes_options(files=RunFiles, limits=RunLimits)
def answer_run(
    run_id: IdArgument,
    files: RunFiles,
    limits: RunLimits,
    out: OutOption = Path(),
    accept: Annotated[bool, "Take what it asks about as it is."] = False,
    given: Annotated[Path | None, "The answer as a JSON file; - reads stdin.", Shown("--json")] = None,
) -> None:
    """Answer what a run asks you, and resume it.

    In a terminal it shows a form. A JSON answer names the fields to change, such as {"N2": "a better need"} or
    {"ban": ["E3"], "search": "dropout"}; `runs show ID --json` shows the question with its fields.
    """
    if accept and given is not None:
        raise InputError("--accept and --json are two answers.", help="Give one.")
    _resume(run_id, files.output(out), limits, "accept" if accept else given and read_json(given))


def _resume(
    run_id: str, output: api.running.Output, limits: RunLimits, answer: object = None, *, as_json: bool = False
) -> None:
    """Resume a run, with an answer if it asks something, and print its text."""
    current, found = resolve(**limits.changes())
    found.require_library()
    found.prepare()
    run, request, settings = api.stored_runs.load_resumable(run_id, found, current, limits.changes())
    with api.homes.open_home(settings, found, notice, create=False) as session:
        api.running.require_same_run(run, request, session)
        record, _ = run_steered(request, session, output, answer)
    result_json(record) if as_json else result(f"\n{record['text']}")
    end_incomplete(record)


@runs_app.command("delete")
def delete_runs(
    run_ids: Annotated[list[str], "Ids of the runs.", Shown(completes="runs")],
) -> None:
    """Delete runs; cached model answers stay in the journal."""
    _, found = resolve()
    found.require_library()
    found.prepare()
    for run in [found.runs().get(run_id) for run_id in run_ids]:  # all are known before any is deleted
        blocking.run_async(api.stored_runs.delete_run(found, run.thread_id))
        notice(f"Deleted {run.thread_id}.")


def when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
