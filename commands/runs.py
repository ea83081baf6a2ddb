"""runs: what was written, what waits to be gone on with."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from citeloom.commands.console import notice, result, result_json, table
from citeloom.commands.options import HomeOption, JsonOption, resolve, workbench
from citeloom.commands.sections import OutOption, write_one

runs_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, show, resume and delete runs.")

IdArgument = Annotated[str, typer.Argument(help="Id of the run, or its beginning.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(runs_app, name="runs", rich_help_panel="Runs")


def _register_of(home: Path | None) -> Any:
    from citeloom.stores.runs import RunRegister

    _, found = resolve(home)
    found.prepare()
    return RunRegister(found.runs)


@runs_app.command("list")
def list_runs(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """List all runs, the latest first."""
    runs = _register_of(home).all()
    if as_json:
        result_json([_record(run) for run in runs])
        return
    rows = [[run.thread_id, run.status, _when(run.updated_at), run.title, run.detail] for run in runs]
    table(f"{len(rows)} runs", ["run", "status", "last", "paper", "detail"], rows)


@runs_app.command("show")
def show_run(run_id: IdArgument, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Show one run: how it stands, its searches, and its text once there is one."""
    from citeloom.graph.run import state_values
    from citeloom.stores.runs import RunRegister

    _, found = resolve(home)
    found.prepare()
    run = RunRegister(found.runs).get(run_id)
    values = asyncio.run(state_values(found, run.thread_id))
    queries = [
        {key: record[key] for key in ("query", "origin", "evidence_ids")} for record in values.get("queries", [])
    ]
    if as_json:
        result_json({**_record(run), "queries": queries, "result": run.result})
        return
    result(f"{run.thread_id}: {run.status}{f' ({run.detail})' if run.detail else ''}")
    result(f"{run.section} of: {run.title}\nbegun {_when(run.started_at)}, last {_when(run.updated_at)}\n")
    for record in queries:
        result(
            f"[{record['origin']}] {' '.join(record['query'].split())} -> {', '.join(record['evidence_ids']) or 'nothing'}"
        )
    if run.result:
        result(f"\n{run.result['text']}")


@runs_app.command("resume")
def resume_run(
    run_id: IdArgument, out: OutOption = Path(), as_json: JsonOption = False, home: HomeOption = None
) -> None:
    """Go on with a run that was paused or killed; the experiment is kept with the run."""
    record = asyncio.run(_resume(run_id, out, home))
    if as_json:
        result_json(record)
    else:
        result(f"\n{record['text']}")


async def _resume(run_id: str, out: Path, home: Path | None) -> dict[str, Any]:
    from citeloom.errors import InputError
    from citeloom.experiment import parse_experiment
    from citeloom.graph.run import same_run
    from citeloom.stores.runs import RunRegister

    settings, found = resolve(home)
    found.prepare()
    run = await asyncio.to_thread(RunRegister(found.runs).get, run_id)
    experiment = parse_experiment(run.request["experiment"], source=run.request["source"])
    with workbench(settings, found) as bench:
        if not await asyncio.to_thread(same_run, run, experiment, bench):
            raise InputError(
                f"Run {run.thread_id} was begun with another library or other settings.",
                help="Restore them, or give the section's command for a new run.",
            )
        return await write_one(run.section, experiment, run.request["source"], out, run.fresh, bench)


@runs_app.command("delete")
def delete_runs(
    run_ids: Annotated[list[str], typer.Argument(help="Ids of the runs.")], home: HomeOption = None
) -> None:
    """Delete runs with their checkpoints; answers of models stay in the journal."""
    from citeloom.graph.run import delete_run

    _, found = resolve(home)
    found.prepare()
    for run_id in run_ids:
        run = asyncio.run(delete_run(found, run_id))
        notice(f"Deleted {run.thread_id}.")


def _record(run: Any) -> dict[str, Any]:
    names = (
        "thread_id",
        "section",
        "title",
        "status",
        "detail",
        "library_version",
        "fresh",
        "started_at",
        "updated_at",
    )
    return {name: getattr(run, name) for name in names}


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
