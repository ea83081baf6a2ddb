"""runs: list, show, answer, resume and delete runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..api.blocking import run_async
from ..api.messages import command, counted, shorten
from ..api.run_options import RunLimits
from ..errors import InputError
from .options import JsonOption, command_session, complete_runs, readable_records, resolve, takes_options
from .output import Columns, Printed, notice, one_line, result, result_json
from .run_display import end_incomplete, read_json, run_steered
from .sections import OutOption, RunFiles

if TYPE_CHECKING:
    from ..api.results import RunDetails
    from ..api.running import Output

runs_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, show, answer, resume and delete runs.")

_FIRST_IDS: Final = 5
_MAX_QUERY: Final = 160  # characters
IdArgument = Annotated[str, typer.Argument(help="Id of the run, or a prefix of it.", autocompletion=complete_runs)]


@runs_app.command("list")
def list_all() -> Printed:
    """List all runs, the latest first."""
    from ..api.stored_runs import list_runs

    records = list_runs(readable_records(resolve()[1]))
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
    from ..api.stored_runs import run_details

    return Printed(run_async(run_details(run_id, readable_records(resolve()[1]))), _show_run)


def _show_run(record: RunDetails) -> None:
    detail = f" ({record['detail']})" if record["detail"] else ""
    result(one_line(f"{record['thread_id']}: {record['status']}{detail}"))
    of = "research" if record["section"] == "research" else f"{record['section']} of"
    started, updated = when(record["started_at"]), when(record["updated_at"])
    result(f"{of}: {one_line(record['title'])}\nstarted {started}, updated {updated}\n")
    if asked := record["waiting"]:
        result(f"It waits for you ({asked['ask']}: {asked['summary']}):\n{asked['about']}\n")
        result(f"To answer it: {command('runs answer ' + record['thread_id'])}\n")
    for query in record["queries"]:
        ids = query["evidence_ids"]
        named = f"{', '.join(ids[:_FIRST_IDS])}{', ...' if len(ids) > _FIRST_IDS else ''}"
        found = f"{counted(len(ids), 'finding')} ({named})" if ids else "nothing found"
        said = shorten(query["query"], _MAX_QUERY)
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
    accept: Annotated[bool, typer.Option("--accept", help="Take what it asks about as it is.")] = False,
    given: Annotated[Path | None, typer.Option("--json", help="The answer as a JSON file; - reads stdin.")] = None,
) -> None:
    """Answer what a run asks you, and resume it.

    In a terminal it shows a form. A JSON answer names the fields to change, such as {"N2": "a better need"} or
    {"ban": ["E3"], "search": "dropout"}; `runs show ID --json` shows the question with its fields.
    """
    if accept and given is not None:
        raise InputError("--accept and --json are two answers.", help="Give one.")
    _resume(run_id, files.output(out), limits, "accept" if accept else given and read_json(given))


def _resume(run_id: str, output: Output, limits: RunLimits, answer: object = None, *, as_json: bool = False) -> None:
    """Resume a run, with an answer if it asks something, and print its text."""
    from ..api.running import require_same_run
    from ..api.stored_runs import load_resumable

    current, found = resolve(**limits.changes())
    found.require_library()
    found.prepare()
    run, request, settings = load_resumable(run_id, found, current, limits.changes())
    with command_session(settings, found, create=False) as session:
        require_same_run(run, request, session)
        record, _ = run_steered(request, session, output, answer)
    result_json(record) if as_json else result(f"\n{record['text']}")
    end_incomplete(record)


@runs_app.command("delete")
def delete_runs(
    run_ids: Annotated[list[str], typer.Argument(help="Ids of the runs.", autocompletion=complete_runs)],
) -> None:
    """Delete runs; cached model answers stay in the journal."""
    from ..api.stored_runs import delete_run

    _, found = resolve()
    found.require_library()
    found.prepare()
    for run in [found.runs().get(run_id) for run_id in run_ids]:  # all are known before any is deleted
        run_async(delete_run(found, run.thread_id))
        notice(f"Deleted {run.thread_id}.")


def when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
