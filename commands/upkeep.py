"""setup, doctor, rebuild-index, library, usage, journal and memory: set up, check, repair and move a library."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Final

import typer

from .. import api
from ..api.blocking import run_async
from ..api.messages import command, counted, megabytes
from ..api.run_options import Shown
from ..errors import DONE, DONE_WITH_REFUSALS, InputError
from .options import command_group, complete_runs, home_session, resolve
from .output import (
    Columns,
    Printed,
    ingest_progress,
    notice,
    one_line,
    print_warnings,
    result,
    show_rebuilt_index,
    table,
)

library_app = command_group("Move a whole library.")
library_app.callback()(lambda: None)  # otherwise Typer merges a group with its only command
_SHOWN_ANYWAY: Final = frozenset({"home", "embedding", "library"})  # also in the lines below the findings
_FIRST_SETTINGS: Final = frozenset({"chat_model", "chat_base_url", "chat_api_key", "embedding_model"})


def doctor(
    repair: Annotated[bool, "Repair the problems; papers that lost their vectors are embedded again."] = False,
    all_settings: Annotated[bool, "Show every setting in force with its origin.", Shown("--settings")] = False,
) -> Printed:
    """Check the library, and show your settings.

    A LangGraph server started in the same folder with the same environment opens the same home. Exit code 1 if a
    problem remains.
    """
    settings, found = resolve()
    record: dict[str, Any] = {
        "home": str(found.name),
        "settings": api.library_upkeep.describe_settings(settings),
        "findings": [],
    }
    if found.exists():
        with api.homes.open_home(settings, found, notice, create=False, reading=not repair) as session:
            record["library"] = run_async(api.library_upkeep.alibrary_counts(session))
            if repair:
                with ingest_progress() as show:
                    record["findings"], refused = run_async(api.library_upkeep.arepair_library(session, on_event=show))
                print_warnings({"warnings": (), "refused": refused})
            record["findings"] += run_async(api.library_upkeep.acheck_library(session))
    failed = any(finding["level"] == "problem" for finding in record["findings"])
    return Printed(record, lambda record: _doctor_lines(record, all_settings=all_settings), int(failed))


def _doctor_lines(record: dict[str, Any], *, all_settings: bool) -> Iterator[str]:
    """Format findings (problems first), the library, then settings; defaults only with `all_settings`."""
    for finding in sorted(record["findings"], key=lambda finding: finding["level"] == "fine"):
        if finding["level"] == "fine" and finding["topic"] in _SHOWN_ANYWAY:
            continue
        remedy = f" {finding['remedy']}" if finding["remedy"] else ""
        yield one_line(f"  {finding['level']}: {finding['topic']}: {finding['message']}.{remedy}")
    if library := record.get("library"):
        held = f"{counted(library['papers'], 'paper')}, {counted(library['chunks'], 'chunk')}"
        yield f"Library: {held}, embedding {library['embedding']}"
    else:
        yield f"There is no library here yet: {command('ingest PAPERS --bib FILE')}."
    shown = {
        name: (value, origin)
        for name, (value, origin) in record["settings"].items()
        if all_settings or name in _FIRST_SETTINGS or origin != "default"
    }
    yield from (one_line(f"  {name} = {value}  ({origin})") for name, (value, origin) in shown.items())
    if len(shown) < len(record["settings"]):
        yield f"All settings: {command('doctor --settings')}"


def rebuild_index() -> Printed:
    """Rebuild the index from the files of the indexed papers.

    Keys and metadata stay as they are, and the vectors of unchanged texts are reused; to embed everything again,
    ingest into a new --home. A paper whose file is gone is kept if its passages are complete. Exit code 4 means that
    some papers could not be indexed, each named with its reason.
    """
    with home_session() as session, ingest_progress() as show:
        record = run_async(api.library_upkeep.arebuild_index(session, on_event=show))
    print_warnings(record)
    return Printed(record, show_rebuilt_index, DONE_WITH_REFUSALS if record["refused"] else DONE)


@library_app.command("copy")
def copy_library(
    to: Annotated[str, typer.Option(help="The other home: a folder, or a postgresql:// address.")],
    papers_only: Annotated[bool, "Copy only the papers, without runs, conversations, journal and metadata."] = False,
    to_vectors: Annotated[
        str | None,
        "The Milvus server of the other home, if that is in PostgreSQL.",
        Shown(default="CITELOOM_VECTORS, if this home is a folder"),
    ] = None,
) -> Printed:
    """Copy a home to another one, without embedding a text or paying for an answer again.

    Papers, runs with their edits and checkpoints, conversations, the journal and the metadata from services are
    copied, and compared at the end; the papers' files stay where they are. Run the command again to resume an
    interrupted copy. A target that holds anything else is refused.
    """
    settings, found = resolve(to_copy=True)
    other = api.library_upkeep.target_home(settings, found, to, to_vectors)
    readable = api.homes.readable_home(found, notice, library=True, records=not papers_only)
    with api.homes.open_home(settings, readable, notice, create=False, reading=True) as session:
        record = run_async(api.library_upkeep.acopy_library(session, other, papers_only=papers_only, on_notice=notice))
    held = f"{counted(record['copied'], 'paper')} copied, {record['present']} already there"
    lines = [f"{held}; {counted(record['chunks'], 'chunk')} compared, version {record['version']}."]
    if records := record["records"]:
        kinds = (("runs", "run"), ("conversations", "conversation"), ("answers", "cached answer"))
        counts = ", ".join(counted(records[name], word) for name, word in kinds)
        lines.append(f"{counts} and {counted(records['checkpoints'], 'checkpoint')} were compared.")
    return Printed(record, lambda _: lines)


journal_app = command_group("Show and prune cached model answers.")


def usage(
    run_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Ids of runs; all runs when left out.", autocompletion=complete_runs),
    ] = None,
) -> Printed:
    """Show calls, cached answers, tokens and cost of each run; the bundled models cost nothing and are not counted.

    Costs are shown for models with a price in the settings (CITELOOM_PRICES, or [prices] in citeloom.toml).
    """
    settings, found = resolve()
    rows = run_async(api.stored_runs.read_spending(api.homes.records_home(found, notice), run_ids or ()))
    records = [api.stored_runs.spending_record(row, settings.prices) for row in rows]
    total = api.stored_runs.usage_total(rows, settings.prices)

    def count_of(name: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda record: f"{record[name]:,}"

    numbers = {
        "calls made": "llm_calls",
        "answers reused": "journal_hits",
        "texts embedded remotely": "embedded_texts",
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
        table("Usage", [*records, {"run": "total", "model": "", **total}], columns)
        if lost := sum(record["lost_calls"] for record in records):
            notice(f"In addition, {counted(lost, 'request')} failed or were refused; they count against a budget.")

    return Printed({"runs": records, "total": total}, show)


@journal_app.command("stats")
def stats() -> Printed:
    """Show the size, age, models and reuse of cached answers."""
    named = resolve()[1]
    place = one_line(str(named.place_of("journal.sqlite")))

    def show(record: dict[str, Any]) -> None:
        if not record["answers"] and not record["made"]:
            result(f"{place}: empty. Every answer of a chat or embedding model will be kept there.")
            return
        oldest, size = record["oldest"], megabytes(record["file_bytes"])
        since = "" if oldest is None else f", the oldest of {datetime.fromtimestamp(oldest):%Y-%m-%d %H:%M}"
        result(f"{place}: {size}, {counted(record['answers'], 'answer')}{since}")
        made, reused, rejected = record["made"], record["reused"], record["rejected"]
        result(f"Calls made: {made}. Answers reused: {reused}. Rejected, never reused: {rejected}.")
        columns: Columns = {name: name for name in ("kind", "model", "endpoint")}
        numbers = {"answers": lambda row: f"{row['answers']:,}", "size": lambda row: megabytes(row["payload_bytes"])}
        table("Cached answers", record["models"], {**columns, **numbers})

    return Printed(api.stored_runs.survey_journal(api.homes.records_home(named, notice)), show)


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

    The usage of runs stays counted. Answers that a paused or killed run needs to resume are always kept.
    """
    _, found = resolve()
    if older_than is None and not rejected:
        raise InputError("No answers were selected to prune.", help="Give --older-than DAYS, --rejected, or both.")
    which: dict[str, Any] = {"older_than": older_than, "rejected": rejected, "embeddings": embeddings}
    pruned = api.stored_runs.prune_journal(found, **which, dry_run=dry_run)
    verb = "would be deleted" if dry_run else "deleted"
    gone = f"{counted(pruned['answers'], 'answer')} {verb} ({megabytes(pruned['payload_bytes'])})"
    lines = [f"{gone}; {pruned['kept_for_runs']} kept for unfinished runs."]
    lines += [] if dry_run else [f"The journal takes {megabytes(pruned['file_bytes'])} now."]
    return Printed(pruned, lambda _: lines)


def setup(
    model: Annotated[str | None, typer.Option(help="Chat model. Default: the first one found.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible endpoint. Default: the first one found.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Take the first model found, without asking.")] = False,
) -> None:
    """Choose a chat model, try one call, and write it to your settings file.

    Looks for an OPENAI_API_KEY, and for Ollama, LM Studio, llama.cpp or vLLM on their default local ports. Keys are not
    written: they stay in the environment.

    Example: citeloom setup --yes
    """
    from ..settings.key_trust import user_configuration

    asking = not yes and sys.stdin.isatty()
    if not asking and not yes:
        raise InputError("There is no terminal to ask on.", help="Give --yes to take the first model found.")
    url, name = _choose_model(model, base_url, asking=asking)
    run_async(api.model_setup.atry_model(name, url))
    file = user_configuration()
    if asking and not typer.confirm(f"{name} answers. Write it to {file}?", default=True):
        raise typer.Exit(0)
    api.model_setup.write_settings(file, {"chat_model": name, "chat_base_url": url})
    result(one_line(f"{name} at {url} answers, and is now the chat model ({file})."))
    result(f"Next: {command('ingest PAPERS --bib FILE')}")


def _choose_model(model: str | None, base_url: str | None, *, asking: bool) -> tuple[str, str]:
    from ..settings.config import OPENAI_BASE_URL

    if base_url is not None:
        models = (model,) if model else api.model_setup.models_at(base_url)
        found = [api.model_setup.FoundServer("server", base_url, models)]
    else:
        found = api.model_setup.find_servers()
        notice(*(f"Found {server.name} at {server.base_url} ({', '.join(server.models[:5])})" for server in found))
    if model is not None and base_url is None:
        having = [server for server in found if model in server.models or server.base_url == OPENAI_BASE_URL]
        return (having[0].base_url if having else OPENAI_BASE_URL), model
    found = [server for server in found if server.models]
    if not found:
        ports = ", ".join(f"{name} ({port})" for name, port in api.model_setup.USUAL_PORTS.items())
        raise InputError(
            f"No chat model was found: OPENAI_API_KEY is not set, and none of these servers answers: {ports}."
            if base_url is None
            else f"{base_url} lists no chat model.",
            help="Start a server, or give --base-url and --model. Without a chat model Citeloom quotes your papers.",
        )
    server = found[_ask_choice("Server", [each.name for each in found]) if asking and len(found) > 1 else 0]
    place = _ask_choice("Model", list(server.models)) if asking and len(server.models) > 1 else 0
    return server.base_url, server.models[place]


def _ask_choice(what: str, names: list[str]) -> int:
    notice(*(f"  {number}  {one_line(name)}" for number, name in enumerate(names, 1)))
    chosen = 0
    while not 1 <= chosen <= len(names):
        chosen = typer.prompt(what, default=1, type=int, err=True)
    return chosen - 1


memory_app = command_group("Preferences and facts for every text; nothing is learnt unless you accept it.")
IdArgument = Annotated[str, "Id, or a prefix of it."]
SharedOption = Annotated[bool, "Share the line with all users of this library."]
_EFFECTS: Final = {
    "ban": "never cited",
    "term": "shown to the writer, and checked",
    "spelling": "shown to the writer, and checked",
    "note": "shown to the writer",
}


@memory_app.command("list")
def list_lines() -> Printed:
    """List the lines, yours first."""
    records: list[Any] = run_async(api.remembering.alist_memory(*resolve()))
    columns: Columns = {
        "id": "id",
        "of": lambda record: "everyone" if record["shared"] else "you",
        "effect": lambda record: _EFFECTS[record["kind"]],
        "line": "text",
    }
    return Printed.listed(records, "line", columns, ("line",))


@memory_app.command("add")
def add_line(
    text: Annotated[str, "A line: 'participants, not subjects', 'British spelling', 'never cite KEY' ..."],
    shared: SharedOption = False,
) -> None:
    """Add a line."""
    _print_line(run_async(api.remembering.aremember(*resolve(), text, shared=shared)))


@memory_app.command("edit")
def edit_line(line_id: IdArgument, text: Annotated[str, "The new line."]) -> None:
    """Replace a line."""
    _print_line(run_async(api.remembering.aremember(*resolve(), text, note_id=line_id)))


@memory_app.command("delete")
def delete_line(line_id: IdArgument) -> None:
    """Delete a line."""
    notice(f"Deleted: {one_line(run_async(api.remembering.aforget(*resolve(), line_id))['text'])}")


@memory_app.command("proposals")
def list_proposals() -> Printed:
    """List what your edits of finished texts suggest; accept or decline each."""
    records: list[Any] = run_async(api.remembering.apropose_memory(*resolve()))

    lines = [
        one_line(line)
        for record in records
        for line in (
            f"{record['id']}  {record['text']}  ({counted(record['edits'], 'edit')})",
            *(f"    {sign} {words}" for sign, words in zip("-+", record["examples"][0], strict=True)),
        )
    ]
    return Printed({"proposals": records}, lambda _: lines or ["Your edits suggest nothing new."])


@memory_app.command("accept")
def accept_proposal(
    proposal_id: IdArgument,
    text: Annotated[str, "Another wording of the line.", Shown("--as")] = "",
    shared: SharedOption = False,
) -> None:
    """Put a proposal into the memory."""
    line = run_async(api.remembering.aanswer_proposal(*resolve(), proposal_id, accept=True, text=text, shared=shared))
    if line is not None:
        _print_line(line)


@memory_app.command("decline")
def decline_proposal(proposal_id: IdArgument) -> None:
    """Never propose this again."""
    run_async(api.remembering.aanswer_proposal(*resolve(), proposal_id, accept=False))
    notice(f"{proposal_id} will not be proposed again.")


def _print_line(line: Any) -> None:
    notice(f"{line['id']}: {one_line(line['text'])} ({_EFFECTS[line['kind']]})")
