"""runs: list, show, resume and delete runs."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..api.blocking import run_async
from ..api.messages import counted, shorten
from ..api.run_options import RunLimits
from .options import HomeOption, JsonOption, command_session, complete_runs, readable_records, resolve, takes_options
from .output import notice, result, result_json
from .research import answer_one
from .run_display import answer_progress
from .run_report import end_incomplete
from .sections import OutOption, RunFiles, write_one
from .terminal_text import Columns, one_line, table

if TYPE_CHECKING:
    from ..api.running import Output, ResultRecord

runs_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, show, resume and delete runs.")

_FIRST_IDS: Final = 5
_MAX_QUERY: Final = 160  # characters
IdArgument = Annotated[str, typer.Argument(help="Id of the run, or a prefix of it.", autocompletion=complete_runs)]


@runs_app.command("list")
def list_all(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """List all runs, the latest first."""
    from ..api.stored_runs import list_runs

    records = list_runs(readable_records(resolve(home)[1]))
    if as_json:
        result_json(records)
        return
    columns: Columns = {
        "run": "thread_id",
        "status": "status",
        "last": lambda record: when(record["updated_at"]),
        "subject": lambda record: one_line(record["title"]),
        "detail": lambda record: one_line(record["detail"]),
    }
    table(counted(len(records), "run"), records, columns, prose=("subject", "detail"))


@runs_app.command("show")
def show_run(run_id: IdArgument, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Show one run: status, searches, and its text if finished."""
    from ..api.stored_runs import run_details

    record = run_async(run_details(run_id, readable_records(resolve(home)[1])))
    if as_json:
        result_json(record)
        return
    detail = f" ({record['detail']})" if record["detail"] else ""
    result(one_line(f"{record['thread_id']}: {record['status']}{detail}"))
    of = "research" if record["section"] == "research" else f"{record['section']} of"
    started, updated = when(record["started_at"]), when(record["updated_at"])
    result(f"{of}: {one_line(record['title'])}\nstarted {started}, updated {updated}\n")
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
    run_id: IdArgument,
    out: OutOption = Path(),
    as_json: JsonOption = False,
    home: HomeOption = None,
    *,
    files: RunFiles,
    limits: RunLimits,
) -> None:
    """Resume a paused or killed run."""
    record = run_async(_resume(run_id, files.output(out), home, limits.changes()))
    if as_json:
        result_json(record)
    else:
        result(f"\n{record['text']}")
    end_incomplete(record)


async def _resume(run_id: str, output: Output, home: str | None, given: dict[str, Any]) -> ResultRecord:
    from ..api.running import ResearchRequest
    from ..api.stored_runs import ResumableRun

    current, found = resolve(home, **given)
    found.require_library()
    found.prepare()
    run = await asyncio.to_thread(ResumableRun.load, run_id, found, current, given)
    with command_session(run.settings, found, create=False) as session:
        await run.require_unchanged(session)
        if isinstance(run.request, ResearchRequest):
            with answer_progress(session.spent_now, draft=False) as view:
                return await answer_one(run.request, output, session, view)
        return await write_one(run.request, output, session)


@runs_app.command("delete")
def delete_runs(
    run_ids: Annotated[list[str], typer.Argument(help="Ids of the runs.", autocompletion=complete_runs)],
    home: HomeOption = None,
) -> None:
    """Delete runs; cached model answers stay in the journal."""
    from ..api.stored_runs import delete_run, find_run

    _, found = resolve(home)
    found.require_library()
    found.prepare()
    for run in [find_run(found, run_id) for run_id in run_ids]:  # all are known before any is deleted
        run_async(delete_run(found, run.thread_id))
        notice(f"Deleted {run.thread_id}.")


def when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
