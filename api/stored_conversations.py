"""Conversations in the register of a home: listed, shown and exported."""

from __future__ import annotations

from ..runs.transcript import (
    conversation_record,
    conversation_summary,
    require_turns,
    transcript,
    transcript_json,
    turn_record,
    write_transcript,
)
from ..stores.backends import backend_of
from ..stores.conversation_register import ConversationEntry, KeptTurn, UnknownConversationError, new_thread_id
from ..stores.home import Home

__all__ = [
    "ConversationEntry",
    "KeptTurn",
    "UnknownConversationError",
    "begin_conversation",
    "conversation_record",
    "conversation_summary",
    "find_conversation",
    "find_turn",
    "last_turn",
    "list_conversations",
    "new_thread_id",
    "read_turns",
    "require_turns",
    "transcript",
    "transcript_json",
    "turn_record",
    "write_transcript",
]


def list_conversations(home: Home) -> list[ConversationEntry]:
    """All conversations, the latest first; blocks."""
    return backend_of(home).conversations().all()


def find_conversation(home: Home, thread_id: str) -> ConversationEntry:
    """The conversation with this id, or the only one with this prefix; blocks. Raises `UnknownConversationError`."""
    return backend_of(home).conversations().get(thread_id)


def begin_conversation(home: Home) -> ConversationEntry:
    """Register a new conversation; blocks."""
    register, thread_id = backend_of(home).conversations(), new_thread_id()
    register.begin(thread_id)
    return register.get(thread_id)


def read_turns(home: Home, thread_id: str) -> list[KeptTurn]:
    """The finished turns of a conversation in order; blocks."""
    return backend_of(home).conversations().turns(thread_id)


def find_turn(home: Home, thread_id: str, number: int) -> KeptTurn | None:
    """A finished turn by its number, from 1; blocks."""
    return next((turn for turn in read_turns(home, thread_id) if turn.number == number), None)


def last_turn(home: Home, thread_id: str, *, answered: bool = False) -> KeptTurn | None:
    """The last finished turn, or the last one that was `answered`; blocks."""
    return backend_of(home).conversations().last_turn(thread_id, answered=answered)
