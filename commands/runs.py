"""runs: lists, shows, resumes and deletes runs."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.blocking import run_async
from ..api.messages import counted
from .answer_stream import answer_progress
from .completion import complete_runs
from .escaping import one_line
from .layout import table
from .options import (
    HomeOption,
    JsonOption,
    MaxCallsOption,
    MaxCostOption,
    MaxTokensOption,
    StrictOption,
    command_session,
    records_of,
    resolve,
)
from .output import notice, result, result_json
from .research import answer_one
from .run_report import end_incomplete
from .sections import ForceOption, OutOption, PageImagesOption, output_to, write_one

if TYPE_CHECKING:
    from ..runs.result_record import ResultRecord
    from ..runs.service import Output
    from ..stores.home import Home
    from ..stores.home_protocols import Runs

runs_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, show, resume and delete runs.")

IdArgument = Annotated[
    str,
    typer.Argument(
        help="Id of the run, or a prefix of it.",
        show_default=False,
        autocompletion=complete_runs,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(runs_app, name="runs", rich_help_panel="Runs")


def registered(home: Home) -> Runs:
    """The run registry of a home with a library; raises `InputError` for any other home."""
    from ..stores.backends import backend_of

    home.require_library()
    return backend_of(home).runs()


@runs_app.command("list")
def list_runs(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """List all runs, the latest first."""
    from ..runs.run_listing import run_summary

    found = records_of(resolve(home)[1])
    records = [run_summary(run, found) for run in registered(found).heads()]
    if as_json:
        result_json(records)
        return
    rows = [
        [
            record["thread_id"],
            record["status"],
            when(record["updated_at"]),
            *map(one_line, (record["title"], record["detail"])),
        ]
        for record in records
    ]
    table(counted(len(rows), "run"), ["run", "status", "last", "paper", "detail"], rows, prose=["paper", "detail"])


@runs_app.command("show")
def show_run(run_id: IdArgument, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Show one run: status, searches, and its text if finished."""
    from ..runs.run_listing import run_details

    found = records_of(resolve(home)[1])
    run = registered(found).get(run_id)
    record = run_async(run_details(run.thread_id, found))
    if as_json:
        result_json(record)
        return
    detail = f" ({record['detail']})" if record["detail"] else ""
    result(one_line(f"{record['thread_id']}: {record['status']}{detail}"))
    of = "research" if record["section"] == "research" else f"{record['section']} of"
    started, updated = when(record["started_at"]), when(record["updated_at"])
    result(f"{of}: {one_line(record['title'])}\nstarted {started}, updated {updated}\n")
    for query in record["queries"]:
        found_ids = ", ".join(query["evidence_ids"]) or "nothing"
        result(one_line(f"[{query['origin']}] {' '.join(query['query'].split())} -> {found_ids}"))
    if run.result:
        result(f"\n{run.result['text']}")


@runs_app.command("resume")
def resume_run(
    run_id: IdArgument,
    out: OutOption = Path(),
    strict: StrictOption = None,
    force: ForceOption = False,
    page_images: PageImagesOption = False,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Resume a paused or killed run."""
    given = {"strict": strict, "max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    record = run_async(_resume(run_id, output_to(out, force=force, page_images=page_images), home, given))
    if as_json:
        result_json(record)
    else:
        result(f"\n{record['text']}")
    end_incomplete(record)


async def _resume(run_id: str, output: Output, home: str | None, given: dict[str, Any]) -> ResultRecord:
    from ..runs.research import ResearchRequest
    from ..runs.resuming import request_to_resume, require_same_run, settings_to_resume

    current, found = resolve(home, **given)
    found.require_library()
    found.prepare()
    run = await asyncio.to_thread(registered(found).get, run_id)
    settings = settings_to_resume(run, current, found, given)
    request = request_to_resume(run)
    with command_session(settings, found, create=False) as session:
        await asyncio.to_thread(require_same_run, run, request, session)
        if isinstance(request, ResearchRequest):
            with answer_progress(session.spent_now, draft=False) as view:
                return await answer_one(request, output, session, view)
        return await write_one(request, output, session)


@runs_app.command("delete")
def delete_runs(
    run_ids: Annotated[
        list[str],
        typer.Argument(
            help="Ids of the runs.",
            autocompletion=complete_runs,
        ),
    ],
    home: HomeOption = None,
) -> None:
    """Delete runs; cached model answers stay in the journal."""
    from ..runs.execution import delete_run

    _, found = resolve(home)
    found.require_library()
    found.prepare()
    register = registered(found)
    for run_id in run_ids:
        register.get(run_id)
    for run_id in run_ids:
        run = run_async(delete_run(found, run_id))
        notice(f"Deleted {run.thread_id}.")


def when(seconds: float) -> str:
    """A timestamp for display."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
