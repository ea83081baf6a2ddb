"""usage: what runs cost; journal: show and prune cached model answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer

from ..api.blocking import run_async
from ..api.messages import counted, megabytes
from .options import JsonOption, complete_runs, readable_records, resolve
from .output import notice, result, result_json
from .terminal_text import Columns, one_line, table

journal_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show and prune cached model answers.")


def usage(
    run_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Ids of runs; all runs when left out.", autocompletion=complete_runs),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show calls, cached answers, tokens and cost of each run.

    A cost is shown where the settings have the model's price (CITELOOM_PRICES, or [prices] in citeloom.toml).
    """
    from ..api.spending import read_spending, spending_record, usage_total

    settings, found = resolve()
    rows = run_async(read_spending(readable_records(found), run_ids or ()))
    records = [spending_record(row, settings.prices) for row in rows]
    total = usage_total(rows, settings.prices)
    if as_json:
        result_json({"runs": records, "total": total})
        return

    def count_of(name: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda record: f"{record[name]:,}"

    numbers = {
        "calls made": "llm_calls",
        "answers reused": "journal_hits",
        "texts embedded": "embedded_texts",
        "tokens in": "input_tokens",
        "tokens out": "output_tokens",
    }
    columns: Columns = {
        "run": "run",
        "model": "model",
        **{label: count_of(name) for label, name in numbers.items()},
        "cost": lambda record: "price not known" if record["cost"] is None else f"{record['cost']:.4f}",
    }
    table("Usage", [*records, {"run": "in all", "model": "", **total}], columns)
    if any(record["lost_calls"] for record in records):
        lost = sum(record["lost_calls"] for record in records)
        notice(f"In addition, {counted(lost, 'request')} failed or were refused; they count against a budget.")


@journal_app.command("stats")
def stats(as_json: JsonOption = False) -> None:
    """Show the size, age, models and reuse of cached answers."""
    from ..api.spending import survey_journal

    named = resolve()[1]
    record = survey_journal(readable_records(named))
    if as_json:
        result_json(record)
        return
    place = str(named.place_of("journal.sqlite"))
    if not record["answers"] and not record["made"]:
        result(f"{one_line(place)}: empty. Every answer of a chat or embedding model will be kept there.")
        return
    oldest, size = record["oldest"], megabytes(record["file_bytes"])
    since = "" if oldest is None else f", the oldest of {datetime.fromtimestamp(oldest):%Y-%m-%d %H:%M}"
    result(f"{one_line(place)}: {size}, {counted(record['answers'], 'answer')}{since}")
    made, reused, rejected = record["made"], record["reused"], record["rejected"]
    result(f"Calls made: {made}. Answers reused: {reused}. Rejected, never reused: {rejected}.")
    columns: Columns = {
        "kind": "kind",
        "model": "model",
        "endpoint": "endpoint",
        "answers": lambda row: f"{row['answers']:,}",
        "size": lambda row: megabytes(row["payload_bytes"]),
    }
    table("Cached answers", record["models"], columns)


@journal_app.command("prune")
def prune(
    older_than: Annotated[
        float | None, typer.Option(min=0, metavar="DAYS", help="Answers older than this many days.")
    ] = None,
    rejected: Annotated[bool, typer.Option("--rejected", help="Answers that failed validation.")] = False,
    embeddings: Annotated[bool, typer.Option("--embeddings", help="Only embedding vectors.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be deleted.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete cached answers and free their space.

    The usage of runs stays counted. Answers of a paused or killed run are always kept, since it resumes from them.
    """
    from ..api.spending import prune_journal
    from ..errors import InputError

    _, found = resolve()
    if older_than is None and not rejected:
        raise InputError("No answers were selected to prune.", help="Give --older-than DAYS, --rejected, or both.")
    pruned = prune_journal(found, older_than=older_than, rejected=rejected, embeddings=embeddings, dry_run=dry_run)
    if as_json:
        result_json(pruned)
        return
    verb = "would be deleted" if dry_run else "deleted"
    gone = f"{counted(pruned['answers'], 'answer')} {verb} ({megabytes(pruned['payload_bytes'])})"
    result(f"{gone}; {pruned['kept_for_runs']} kept for unfinished runs.")
    if not dry_run:
        result(f"The journal takes {megabytes(pruned['file_bytes'])} now.")
