"""chat: a shell over the library; conversations: list, show, export and delete conversations."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.blocking import run_async, run_here
from ..api.messages import counted, filled
from ..api.run_options import ChatSettings
from .options import command_on_home, command_session, complete_conversations, readable_records, resolve, takes_options
from .output import Columns, Printed, notice, notice_command
from .runs import when
from .sections import OverwriteOption

if TYPE_CHECKING:
    from ..api.homes import Home
    from ..api.stored_runs import KeptTurn
    from ..settings.config import Settings

HISTORY = "chat_history"
conversations_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, show, export and delete conversations; 'chat --thread ID' continues one.",
)

IdArgument = Annotated[
    str, typer.Argument(help="Id of the conversation, or a prefix of it.", autocompletion=complete_conversations)
]


@takes_options(settings=ChatSettings)
def chat(
    settings: ChatSettings,
    exp: Annotated[Path | None, "The experiment for 'section', as JSON."] = None,
    thread: Annotated[
        str | None,
        typer.Option(
            help="Id of a conversation to continue, or a prefix of it.", autocompletion=complete_conversations
        ),
    ] = None,
) -> None:
    """Ask questions in a shell, with follow-ups.

    'help' in the shell lists its commands: find papers, read summaries, open files; plain text is a question. Commands
    accept the numbers of the last list or of citations; a citation keeps its number for the whole conversation. Ctrl-C
    pauses a running answer, 'resume' continues it, Ctrl-D leaves. Lines can also be piped in, one command each.
    """
    code = run_here(_chat(*resolve(**settings.changes()), exp, thread))
    if code:
        raise typer.Exit(code)


async def _chat(settings: Settings, home: Home, exp: Path | None, thread: str | None) -> int:
    from ..api.homes import chunk_counts
    from ..api.stored_runs import new_thread_id
    from .shell import display, parser
    from .shell.repl import converse
    from .shell.research_commands import finish_opening, restore
    from .shell.shell_state import NO_PAPERS, Opening, Shell

    opening = Opening(settings, home)
    chunks = chunk_counts(home)
    if chunks:
        opening.start()
        held = f"{counted(len(chunks), 'paper')}, {counted(sum(chunks.values()), 'chunk')}"
        notice(f"{held}. 'help' lists the commands, Ctrl-D leaves.")
    else:
        display.failure(f"The library is empty. {filled(NO_PAPERS)}")
    shell = Shell(opening, new_thread_id(), exp)
    if thread is not None:
        restore(shell, home, thread)
    if chunks:
        shell.behind = asyncio.ensure_future(finish_opening(shell, settings, home))
    interactive = parser.on_terminal()
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


def _open_home() -> tuple[Settings, Home]:
    """The settings and home of a command, after deleting expired conversations."""
    settings, found = resolve()
    found = readable_records(found)
    if found.copy_of is None:
        run_async(forget_expired(settings, found))
    return settings, found


def _turns_of(thread_id: str) -> tuple[Home, str, list[KeptTurn]]:
    """The home of a command, and a conversation's whole id and finished turns, with the user's edits."""
    from ..api import stored_runs as stored

    settings, found = _open_home()
    thread_id = found.conversations().get(thread_id).thread_id
    if not stored.is_edited(found, thread_id):
        return found, thread_id, found.conversations().turns(thread_id)
    with command_session(settings, found, create=False, reading=True) as session:
        return found, thread_id, stored.turns_as_shown(session, thread_id)


async def forget_expired(settings: Settings, home: Home, but: str = "") -> None:
    """Delete expired conversations except `but`, and print how many."""
    if settings.conversation_days is None:
        return
    from ..api.conversation import delete_expired

    deleted = await delete_expired(home, settings.conversation_days, but)
    if deleted:
        count, days = counted(len(deleted), "conversation"), counted(settings.conversation_days, "day")
        notice(f"Deleted {count} unused for {days} (CITELOOM_CONVERSATION_DAYS).")


@conversations_app.command("list")
@takes_options()
def list_conversations(
    search: Annotated[str, "Only those that have all of these words."] = "",
    archived: Annotated[bool, "Those that are archived."] = False,
) -> Printed:
    """List the conversations, the latest first."""
    from ..api import stored_runs as stored

    entries = stored.list_conversations(_open_home()[1], search, archived=archived)
    records = [stored.conversation_summary(entry) for entry in entries]
    columns: Columns = {
        "conversation": "thread_id",
        "turns": "turns",
        "last": lambda record: when(record["updated_at"]),
        "name or first question": "title",
    }
    return Printed.listed(records, "conversation", columns, ("name or first question",))


@conversations_app.command("show")
def show_conversation(thread_id: IdArgument) -> Printed:
    """Show a conversation: its questions and answers, with the references of all."""
    from ..api import stored_runs as stored

    found, thread_id, turns = _turns_of(thread_id)
    unanswered = f"Conversation {thread_id}: no question has been answered yet."
    record = stored.conversation_record(found.conversations().get(thread_id), turns)
    return Printed(record, lambda _: [stored.transcript(thread_id, turns)] if turns else notice(unanswered))


@conversations_app.command("export")
@takes_options(files=OverwriteOption)
def export_conversation(
    thread_id: IdArgument,
    file: Annotated[Path, "File to write: JSON if its name ends in .json, else markdown."],
    files: OverwriteOption,
) -> None:
    """Export a conversation to a file; never overwrites a file that you edited."""
    from ..api import stored_runs as stored

    found, thread_id, turns = _turns_of(thread_id)
    written, notices = stored.write_transcript(file, thread_id, turns, home=found, force=files.force)
    for line in notices:
        notice(f"Note: {line}")
    notice(f"Written: {written}")


@conversations_app.command("label")
def label_conversation(
    thread_id: IdArgument,
    name: Annotated[str | None, typer.Option(help="Its name; '' for its first question again.")] = None,
    archive: Annotated[bool | None, typer.Option("--archive/--no-archive", help="Archive it, or not any more.")] = None,
) -> None:
    """Name a conversation, or archive it; the next question brings it back."""
    from ..api.homes import require_writable_home
    from ..api.stored_runs import label_conversation

    found = _open_home()[1]
    require_writable_home(found)
    entry = label_conversation(found, thread_id, name=name, archived=archive)
    notice(f"{entry.thread_id}: {entry.title or 'no question yet'}{' (archived)' if entry.archived else ''}")


@conversations_app.command("delete")
def delete_conversations(
    thread_ids: Annotated[
        list[str], typer.Argument(help="Ids of the conversations.", autocompletion=complete_conversations)
    ],
) -> None:
    """Delete conversations; cached model answers stay in the journal."""
    from ..api.conversation import delete_conversation
    from ..api.homes import require_writable_home

    found = _open_home()[1]
    require_writable_home(found)
    for entry in [found.conversations().get(thread_id) for thread_id in thread_ids]:
        run_async(delete_conversation(found, entry.thread_id))
        notice(f"Deleted {entry.thread_id}.")
