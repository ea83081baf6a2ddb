"""runs and conversations: list, show, answer, resume, export and delete them; chat: a shell over the library."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from .. import api
from ..api import blocking, run_options
from ..api.messages import command, counted, fill_placeholders, shorten
from ..api.run_options import RunLimits, Shown
from ..errors import InputError
from .options import JsonOption, command_group, command_on_home, resolve
from .output import Columns, Printed, notice, notice_command, one_line, result, result_json
from .run_display import end_incomplete, read_json, run_steered
from .sections import OutOption, OverwriteOption, RunFiles

if TYPE_CHECKING:
    from ..api.stored_runs import KeptTurn
    from ..settings.config import Settings

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
def resume_run(
    run_id: IdArgument, files: RunFiles, limits: RunLimits, out: OutOption = Path(), as_json: JsonOption = False
) -> None:
    """Resume a paused or killed run."""
    _resume(run_id, files.output(out), limits, as_json=as_json)


@runs_app.command("answer")
def answer_run(
    run_id: IdArgument,
    files: RunFiles,
    limits: RunLimits,
    out: OutOption = Path(),
    accept: Annotated[bool, "Accept what it asks about without changes."] = False,
    given: Annotated[Path | None, "The answer as a JSON file; - reads stdin.", Shown("--json")] = None,
) -> None:
    """Answer what a run asks you, and resume it.

    In a terminal it shows a form. A JSON answer names the fields to change, such as {"N2": "a better need"} or
    {"ban": ["E3"], "search": "dropout"}; `runs show ID --json` shows the question with its fields.
    """
    if accept and given is not None:
        raise InputError("--accept and --json cannot be combined.", help="Give one.")
    _resume(run_id, files.output(out), limits, "accept" if accept else given and read_json(given))


def _resume(
    run_id: str, output: api.running.Output, limits: RunLimits, answer: object = None, *, as_json: bool = False
) -> None:
    """Resume a run, with an answer to its question if given, and print its text."""
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
    for run in [found.runs().get(run_id) for run_id in run_ids]:  # raises before anything is deleted
        blocking.run_async(api.stored_runs.delete_run(found, run.thread_id))
        notice(f"Deleted {run.thread_id}.")


def when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


HISTORY = "chat_history"
conversations_app = command_group("List, show, export and delete conversations; 'chat --thread ID' continues one.")

ThreadArgument = Annotated[
    str, "Id of the conversation, or a prefix of it.", run_options.Shown(completes="conversations")
]


def chat(
    settings: run_options.ChatSettings,
    exp: Annotated[Path | None, "The experiment for 'section', as JSON."] = None,
    thread: Annotated[
        str | None, "Id of a conversation to continue, or a prefix of it.", run_options.Shown(completes="conversations")
    ] = None,
) -> None:
    """Ask questions and follow-up questions in a shell.

    'help' in the shell lists its commands: find papers, read summaries, open files; plain text is a question. Commands
    accept the numbers of the last list or of citations; a citation keeps its number for the whole conversation. Ctrl-C
    pauses a running answer, 'resume' continues it, Ctrl-D leaves. Lines can also be piped in, one command each.
    """
    code = blocking.run_here(_chat(*resolve(**settings.changes()), exp, thread))
    if code:
        raise typer.Exit(code)


async def _chat(settings: Settings, home: api.homes.Home, exp: Path | None, thread: str | None) -> int:
    from .shell import parser
    from .shell.repl import converse
    from .shell.shell_commands import finish_opening, restore
    from .shell.shell_state import NO_PAPERS, Opening, Shell, failure

    opening = Opening(settings, home)
    chunks = api.homes.chunk_counts(home)
    if chunks:
        opening.start()
        held = f"{counted(len(chunks), 'paper')}, {counted(sum(chunks.values()), 'chunk')}"
        notice(f"{held}. 'help' lists the commands, Ctrl-D leaves.")
    else:
        failure(f"The library is empty. {fill_placeholders(NO_PAPERS)}")
    shell = Shell(opening, api.stored_runs.new_thread_id(), exp)
    if thread is not None:
        restore(shell, home, thread)
    if chunks:
        shell.behind = asyncio.ensure_future(finish_opening(shell, settings, home))
    interactive = parser.is_interactive()
    if interactive:
        history = home.root / HISTORY if home.exists() else None
        source: parser.Lines = parser.TerminalLines(
            history, lambda: shell.state.last_query_set, lambda: opening.keys() or tuple(chunks)
        )
    else:
        source = parser.PipedLines()
    try:
        code = await converse(shell, source)
    finally:
        if shell.behind is not None:
            shell.behind.cancel()
        await opening.close()
    if shell.turns:
        notice_command("To continue this conversation:", command_on_home(f"chat --thread {shell.thread_id}"))
    return 0 if interactive else code


def _open_home() -> tuple[Settings, api.homes.Home]:
    """Load a command's settings and home, after deleting expired conversations."""
    settings, found = resolve()
    found = api.homes.records_home(found, notice)
    if found.copy_of is None:
        blocking.run_async(forget_expired(settings, found))
    return settings, found


def _load_turns(thread_id: str) -> tuple[api.homes.Home, str, list[KeptTurn]]:
    """Load a command's home, and a conversation's full id and finished turns, with the user's edits."""
    settings, found = _open_home()
    thread_id = found.conversations().get(thread_id).thread_id
    if not api.stored_runs.is_edited(found, thread_id):
        return found, thread_id, found.conversations().turns(thread_id)
    with api.homes.open_home(settings, found, notice, create=False, reading=True) as session:
        return found, thread_id, api.stored_runs.turns_as_shown(session, thread_id)


async def forget_expired(settings: Settings, home: api.homes.Home, but: str = "") -> None:
    """Delete expired conversations except `but`, and print how many."""
    if settings.conversation_days is None:
        return
    deleted = await api.conversation.delete_expired(home, settings.conversation_days, but)
    if deleted:
        count, days = counted(len(deleted), "conversation"), counted(settings.conversation_days, "day")
        notice(f"Deleted {count} unused for {days} (CITELOOM_CONVERSATION_DAYS).")


@conversations_app.command("list")
def list_conversations(
    search: Annotated[str, "Only conversations with all of these words."] = "",
    archived: Annotated[bool, "Archived conversations instead."] = False,
) -> Printed:
    """List the conversations, the latest first."""
    entries = api.stored_runs.list_conversations(_open_home()[1], search, archived=archived)
    records = [api.stored_runs.conversation_summary(entry) for entry in entries]
    columns: Columns = {
        "conversation": "thread_id",
        "turns": "turns",
        "last": lambda record: when(record["updated_at"]),
        "name or first question": "title",
    }
    return Printed.listed(records, "conversation", columns, ("name or first question",))


@conversations_app.command("show")
def show_conversation(thread_id: ThreadArgument) -> Printed:
    """Show a conversation: its questions and answers, with all references."""
    found, thread_id, turns = _load_turns(thread_id)
    unanswered = f"Conversation {thread_id}: no question has been answered yet."
    stored = api.stored_runs
    record = stored.conversation_record(found.conversations().get(thread_id), turns)
    return Printed(record, lambda _: [stored.transcript(thread_id, turns)] if turns else notice(unanswered))


@conversations_app.command("export")
def export_conversation(
    thread_id: ThreadArgument,
    file: Annotated[Path, "File to write: JSON if its name ends in .json, else markdown."],
    files: OverwriteOption,
) -> None:
    """Export a conversation to a file; never overwrites a file that you edited."""
    found, thread_id, turns = _load_turns(thread_id)
    written, notices = api.stored_runs.write_transcript(file, thread_id, turns, home=found, force=files.force)
    notice(*(f"Note: {line}" for line in notices))
    notice(f"Written: {written}")


@conversations_app.command("label")
def label_conversation(
    thread_id: ThreadArgument,
    name: Annotated[str | None, "Its name; '' restores its first question as its name."] = None,
    archive: Annotated[bool | None, "Archive or unarchive it.", run_options.Shown("--archive/--no-archive")] = None,
) -> None:
    """Name a conversation, or archive it; the next question brings it back."""
    found = _open_home()[1]
    api.homes.require_writable_home(found)
    entry = api.stored_runs.label_conversation(found, thread_id, name=name, archived=archive)
    notice(f"{entry.thread_id}: {entry.title or 'no question yet'}{' (archived)' if entry.archived else ''}")


@conversations_app.command("delete")
def delete_conversations(
    thread_ids: Annotated[list[str], "Ids of the conversations.", run_options.Shown(completes="conversations")],
) -> None:
    """Delete conversations; cached model answers stay in the journal."""
    found = _open_home()[1]
    api.homes.require_writable_home(found)
    for entry in [found.conversations().get(thread_id) for thread_id in thread_ids]:
        blocking.run_async(api.conversation.delete_conversation(found, entry.thread_id))
        notice(f"Deleted {entry.thread_id}.")
