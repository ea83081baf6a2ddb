"""Restores a conversation: its last answer, and any interrupted question."""

from __future__ import annotations

from ...api.homes import Home
from ...api.messages import counted
from ...api.stored_conversations import find_conversation, last_turn
from ...errors import CiteloomError
from ...settings.config import Settings
from ..chat import forget_expired
from ..output import notice
from .parser import CommandName
from .research_commands import answer_of
from .shell import Shell
from .state import PausedCommand, after

_COMMANDS: dict[str, CommandName] = {"question": "research", "follow-up": "ask", "improve": "improve"}


def restore(shell: Shell, home: Home, thread: str) -> None:
    """Restore the shell to where the conversation was left; raises `UnknownConversationError`. Blocks for a moment."""
    home.require_library()
    entry = find_conversation(home, thread)
    shell.thread_id = entry.thread_id
    last = last_turn(home, entry.thread_id)
    if last is None:
        notice(f"Conversation {entry.thread_id}: nothing was answered yet.")
        return
    shell.turns = last.number
    answered = last if last.answered else last_turn(home, entry.thread_id, answered=True)
    if answered is not None:
        shell.state = after(shell.state, answer_of(answered.record))
    turns = counted(entry.turns, "turn")
    notice(f"Conversation {entry.thread_id}, {turns}. The last question: {last.question}")


async def behind_the_prompt(shell: Shell, settings: Settings, home: Home) -> None:
    """Steps that need the open library: expire old conversations, report an interrupted question."""
    try:
        await shell.opening.wait()
    except CiteloomError:
        return  # it was reported
    await forget_expired(settings, home, shell.thread_id)
    from ...api.conversation import paused_turn

    paused = await paused_turn(shell.thread_id, home)
    if paused is not None and not shell.state.paused:
        shell.state = after(shell.state, PausedCommand(f"{_COMMANDS[paused.kind]} {paused.asked}"))
        notice(f"Interrupted question: {paused.asked} `resume` continues it.")
