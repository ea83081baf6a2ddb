"""A conversation that is gone on with: its last answer is there again, and a question that was stopped is told."""

from __future__ import annotations

from citeloom.commands.console import notice
from citeloom.commands.shell.answering import resumed
from citeloom.commands.shell.context import Shell
from citeloom.commands.shell.language import CommandName
from citeloom.commands.shell.state import Paused, after
from citeloom.errors import CiteloomError
from citeloom.stores.conversations import ConversationRegister
from citeloom.stores.home import Home

_COMMANDS: dict[str, CommandName] = {"question": "research", "follow-up": "ask", "improve": "improve"}


def take_up(shell: Shell, home: Home, thread: str) -> bool:
    """Bring the shell to where the conversation was left; raises `UnknownConversationError`. Blocks for a moment."""
    home.require_library()
    register = ConversationRegister(home.runs)
    entry = register.get(thread)
    shell.thread_id = entry.thread_id
    last = register.last_turn(entry.thread_id)
    if last is None:
        notice(f"Conversation {entry.thread_id}: nothing was answered yet.")
        return True
    shell.turns = last.number
    shell.state = after(shell.state, resumed(last))
    turns = "1 turn" if entry.turns == 1 else f"{entry.turns} turns"
    notice(f"Conversation {entry.thread_id}, {turns}. The last question: {last.question}")
    return True


async def tell_paused(shell: Shell, home: Home) -> None:
    """Tell of a question that was stopped before it was answered, once the library is open."""
    try:
        await shell.opening.workbench()
    except CiteloomError:
        return  # it is told by whoever needs the library
    from citeloom.graph.conversation_run import paused_turn

    paused = await paused_turn(shell.thread_id, home)
    if paused is not None and not shell.state.paused:
        shell.state = after(shell.state, Paused(f"{_COMMANDS[paused.kind]} {paused.asked}"))
        notice(f"A question was stopped: {paused.asked} `resume` goes on with it.")
