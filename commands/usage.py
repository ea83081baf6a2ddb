"""usage: what runs cost; journal: show and prune cached model answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer

from ..api.blocking import run_async
from ..api.messages import counted, megabytes
from .options import complete_runs, readable_records, resolve
from .output import Printed, notice, result
from .terminal_text import Columns, one_line, table

journal_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show and prune cached model answers.")


def usage(
    run_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Ids of runs; all runs when left out.", autocompletion=complete_runs),
    ] = None,
) -> Printed:
    """Show calls, cached answers, tokens and cost of each run.

    A cost is shown where the settings have the model's price (CITELOOM_PRICES, or [prices] in citeloom.toml).
    """
    from ..api.spending import read_spending, spending_record, usage_total

    settings, found = resolve()
    rows = run_async(read_spending(readable_records(found), run_ids or ()))
    records = [spending_record(row, settings.prices) for row in rows]
    total = usage_total(rows, settings.prices)

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

    def show(_: object) -> None:
        table("Usage", [*records, {"run": "in all", "model": "", **total}], columns)
        if lost := sum(record["lost_calls"] for record in records):
            notice(f"In addition, {counted(lost, 'request')} failed or were refused; they count against a budget.")

    return Printed({"runs": records, "total": total}, show)


@journal_app.command("stats")
def stats() -> Printed:
    """Show the size, age, models and reuse of cached answers."""
    from ..api.spending import survey_journal

    named = resolve()[1]
    place = one_line(str(named.place_of("journal.sqlite")))
    return Printed(survey_journal(readable_records(named)), lambda record: _show_stats(place, record))


def _show_stats(place: str, record: dict[str, Any]) -> None:
    if not record["answers"] and not record["made"]:
        result(f"{place}: empty. Every answer of a chat or embedding model will be kept there.")
        return
    oldest, size = record["oldest"], megabytes(record["file_bytes"])
    since = "" if oldest is None else f", the oldest of {datetime.fromtimestamp(oldest):%Y-%m-%d %H:%M}"
    result(f"{place}: {size}, {counted(record['answers'], 'answer')}{since}")
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
    rejected: Annotated[bool, "Answers that failed validation."] = False,
    embeddings: Annotated[bool, "Only embedding vectors."] = False,
    dry_run: Annotated[bool, "Only report what would be deleted."] = False,
) -> Printed:
    """Delete cached answers and free their space.

    The usage of runs stays counted. Answers of a paused or killed run are always kept, since it resumes from them.
    """
    from ..api.spending import prune_journal
    from ..errors import InputError

    _, found = resolve()
    if older_than is None and not rejected:
        raise InputError("No answers were selected to prune.", help="Give --older-than DAYS, --rejected, or both.")
    pruned = prune_journal(found, older_than=older_than, rejected=rejected, embeddings=embeddings, dry_run=dry_run)
    verb = "would be deleted" if dry_run else "deleted"
    gone = f"{counted(pruned['answers'], 'answer')} {verb} ({megabytes(pruned['payload_bytes'])})"
    lines = [f"{gone}; {pruned['kept_for_runs']} kept for unfinished runs."]
    lines += [] if dry_run else [f"The journal takes {megabytes(pruned['file_bytes'])} now."]
    return Printed(pruned, lambda _: lines)
