"""papers describe: has a vision model describe figures."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DONE_WITH_REFUSALS
from ..models.concurrency import run_async
from ..plurals import counted
from .completion import complete_keys
from .library import papers_app
from .options import HomeOption, JsonOption, MaxCallsOption, MaxCostOption, MaxTokensOption, command_session, resolve
from .output import ingest_progress, name_refused_figures, result, result_json

if TYPE_CHECKING:
    from ..graph.session import Session
    from ..ingestion.describing import DescribeReport


def register(_: typer.Typer) -> None:
    """Add the command to `papers`."""
    papers_app.command("describe")(describe_papers)


def describe_papers(
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            help="Citation keys; all papers if none is given.", show_default=False, autocompletion=complete_keys
        ),
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Describe figures again that another model or prompt described.")
    ] = False,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Have the vision model (CITELOOM_VISION_MODEL) describe figures that have no description yet.

    The image, its label and its caption are sent, one call for each image. A description helps to find a figure; it is
    marked as the model's wherever it is shown, and is never quoted or cited. Each is stored at once: when a limit is
    reached, or after a kill, the same command continues. Exit code 4 means that some figures could not be described,
    each named with its reason.

    Example: citeloom papers describe smith2024quantum --max-calls 50
    """
    limits: dict[str, Any] = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
    settings, found = resolve(home, **limits)
    with command_session(settings, found, create=False) as session:
        for key in keys or ():
            session.library.paper(key)
        report = run_async(_described(session, keys or None, refresh=refresh))
    if as_json:
        result_json(report.as_dict())
    else:
        result(described_line(report))
    name_refused_figures(report)
    if report.refused:
        raise typer.Exit(DONE_WITH_REFUSALS)


async def _described(session: Session, keys: Collection[str] | None, *, refresh: bool) -> DescribeReport:
    from ..graph.figure_descriptions import describe_papers as describe

    with ingest_progress() as show:
        return await describe(session, f"describe-{secrets.token_hex(6)}", keys, refresh=refresh, on_event=show)


def described_line(report: DescribeReport) -> str:
    """What was done, in one line."""
    done: dict[str, Any] = report.as_dict()
    return (
        f"{counted(done['described'], 'figure')} described, {len(done['refused'])} not described, "
        f"{done['already_described']} described before."
    )
