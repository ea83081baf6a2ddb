"""conversations: lists, shows, exports and deletes conversations of `chat`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.blocking import run_async
from ..api.messages import counted
from .completion import complete_conversations
from .escaping import one_line
from .layout import table
from .options import HomeOption, JsonOption, records_of, resolve
from .output import notice, result, result_json
from .runs import when
from .sections import ForceOption

if TYPE_CHECKING:
    from ..settings.config import Settings
    from ..stores.home import Home
    from ..stores.home_protocols import Conversations

conversations_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, show, export and delete conversations; 'chat --thread ID' continues one.",
)

IdArgument = Annotated[
    str,
    typer.Argument(
        help="Id of the conversation, or a prefix of it.", show_default=False, autocompletion=complete_conversations
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.add_typer(conversations_app, name="conversations", rich_help_panel="Ask")


def _registered(home: str | None) -> tuple[Settings, Home, Conversations]:
    from ..stores.backends import backend_of

    settings, found = resolve(home)
    found = records_of(found)
    if found.copy_of is None:
        run_async(forget_expired(settings, found))
    return settings, found, backend_of(found).conversations()


async def forget_expired(settings: Settings, home: Home, but: str = "") -> None:
    """Delete expired conversations except `but`, and report how many."""
    if settings.conversation_days is None:
        return
    from ..runs.conversation import delete_expired

    deleted = await delete_expired(home, settings.conversation_days, but)
    if deleted:
        count, days = counted(len(deleted), "conversation"), counted(settings.conversation_days, "day")
        notice(f"Deleted {count} unused for {days} (CITELOOM_CONVERSATION_DAYS).")


@conversations_app.command("list")
def list_conversations(as_json: JsonOption = False, home: HomeOption = None) -> None:
    """List all conversations, the latest first."""
    from ..runs.transcript import conversation_summary

    _, _, register = _registered(home)
    entries = register.all()
    if as_json:
        result_json([conversation_summary(entry) for entry in entries])
        return
    rows = [[entry.thread_id, str(entry.turns), when(entry.updated_at), one_line(entry.title)] for entry in entries]
    table(
        counted(len(rows), "conversation"),
        ["conversation", "turns", "last", "first question"],
        rows,
        prose=["first question"],
    )


@conversations_app.command("show")
def show_conversation(thread_id: IdArgument, as_json: JsonOption = False, home: HomeOption = None) -> None:
    """Show a conversation: its questions and answers, with the references of all."""
    from ..runs.transcript import conversation_record, transcript

    _, _, register = _registered(home)
    entry = register.get(thread_id)
    turns = register.turns(entry.thread_id)
    if as_json:
        result_json(conversation_record(entry, turns))
    elif turns:
        result(transcript(entry.thread_id, turns))
    else:
        notice(f"Conversation {entry.thread_id}: nothing was answered yet.")


@conversations_app.command("export")
def export_conversation(
    thread_id: IdArgument,
    file: Annotated[Path, typer.Argument(help="Markdown, or JSON where it ends in .json.", show_default=False)],
    force: ForceOption = False,
    home: HomeOption = None,
) -> None:
    """Export a conversation to a file; never overwrites a file that you edited."""
    from ..runs.transcript import write_transcript

    _, found, register = _registered(home)
    entry = register.get(thread_id)
    turns = register.turns(entry.thread_id)
    written, notices = write_transcript(file, entry.thread_id, turns, home=found, force=force)
    for line in notices:
        notice(f"Note: {line}")
    notice(f"Written: {written}")


@conversations_app.command("delete")
def delete_conversations(
    thread_ids: Annotated[
        list[str],
        typer.Argument(
            help="Ids of the conversations.",
            autocompletion=complete_conversations,
        ),
    ],
    home: HomeOption = None,
) -> None:
    """Delete conversations; cached model answers stay in the journal."""
    from ..runs.conversation import delete_conversation
    from ..stores.home import Home

    _, found, register = _registered(home)
    (Home(found.copy_of) if found.copy_of else found).prepare()
    entries = [register.get(thread_id) for thread_id in thread_ids]
    for entry in entries:
        run_async(delete_conversation(found, entry.thread_id))
        notice(f"Deleted {entry.thread_id}.")
