"""The register of conversations, with the full record of each answer.

The checkpoints hold the state that the next turn needs. Answers are stored here, once per turn, so that checkpoints
stay small and exports do not depend on them.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final

from ..errors import InputError
from ..table_columns import FLAG, MOMENT, NAME, TEXT, TypedTable, dump_json, integer
from .run_register import RESULT, register_citations
from .tables import Register, columns_of, note_owner

_OF_THREAD: Final = "FROM turns WHERE turns.thread_id = conversations.thread_id"


class UnknownConversationError(InputError):
    """No conversation has the requested id."""

    default_help = "See '{citeloom} conversations list' for the ids."


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """A conversation in the list; `title` is its first question, empty before the first answer."""

    thread_id: Annotated[str, NAME]
    title: Annotated[str, replace(TEXT, source="turns.asked")]
    turns: Annotated[int, replace(integer(), source="turns.number")]
    begun_at: Annotated[float, MOMENT]
    updated_at: Annotated[float, MOMENT]


@dataclass(frozen=True, slots=True)
class KeptTurn:
    """A finished turn; `record` is the answer's full JSON record, in the form of a run's result.

    `answered` is true if it cites anything, even only possibly relevant passages.
    """

    number: Annotated[int, integer()]
    asked: Annotated[str, TEXT]
    question: Annotated[str, TEXT]
    answered: Annotated[bool, FLAG]
    answered_at: Annotated[float, MOMENT]
    record: Annotated[dict[str, Any], RESULT]


CONVERSATIONS: Final = TypedTable("conversations", ("thread_id",), columns_of(ConversationEntry))
TURNS: Final = TypedTable("turns", ("thread_id", "number"), {"thread_id": NAME} | columns_of(KeptTurn))


@dataclass(frozen=True, slots=True)
class CitingTurn:
    """A turn whose answer cites a given paper."""

    thread_id: str
    number: int
    asked: str
    answered_at: float


def new_thread_id() -> str:
    return f"chat-{secrets.token_hex(6)}"


class ConversationRegister(Register):
    """The conversations of a home; blocking and thread-safe."""

    _computed: ClassVar = {
        "turns": f"(SELECT count(*) {_OF_THREAD})",
        "title": f"coalesce((SELECT asked {_OF_THREAD} ORDER BY number LIMIT 1), '')",
    }

    def begin(self, thread_id: str) -> None:
        """Register a conversation; does nothing if it exists."""
        now = time.time()
        with self._tables.transaction() as connection:
            connection.execute(CONVERSATIONS.insert("ignore"), (thread_id, now, now))
            note_owner(connection, thread_id)

    def keep(self, thread_id: str, number: int, asked: str, question: str, record: dict[str, Any]) -> None:
        """Store a finished turn; idempotent."""
        now = time.time()
        row = (thread_id, number, asked, question, int(bool(record["citations"])), now, dump_json(record))
        with self._tables.transaction() as connection:
            connection.execute(TURNS.insert("update"), row)
            register_citations(connection, thread_id, number, record)
            connection.execute("UPDATE conversations SET updated_at = ? WHERE thread_id = ?", (now, thread_id))

    def get(self, thread_id: str) -> ConversationEntry:
        """The conversation with this id or unique id prefix; raises `UnknownConversationError`."""
        return self._find(ConversationEntry, CONVERSATIONS, thread_id, "conversation", UnknownConversationError)

    def all(self) -> list[ConversationEntry]:
        """All conversations, most recent first."""
        return self._select(ConversationEntry, CONVERSATIONS, "ORDER BY updated_at DESC")

    def turns(self, thread_id: str) -> list[KeptTurn]:
        """The finished turns of a conversation, in order."""
        return self._select(KeptTurn, TURNS, "WHERE thread_id = ? ORDER BY number", thread_id)

    def last_turn(self, thread_id: str, *, answered: bool = False) -> KeptTurn | None:
        """The latest finished turn, or the latest that was `answered`."""
        only = " AND answered = 1" if answered else ""
        condition = f"WHERE thread_id = ?{only} ORDER BY number DESC LIMIT 1"
        return next(iter(self._select(KeptTurn, TURNS, condition, thread_id)), None)

    def citing(self, key: str) -> list[CitingTurn]:
        """The turns whose answers cite a paper, most recent first."""
        condition = "JOIN cited_papers USING (thread_id, number) WHERE key = ? ORDER BY answered_at DESC"
        return self._select(CitingTurn, TURNS, condition, key)

    def delete(self, thread_id: str) -> None:
        """Delete a conversation; its checkpoints are left to the caller."""
        with self._tables.transaction() as connection:
            for table in ("cited_papers", "turns", "conversations"):
                connection.execute(f"DELETE FROM {table} WHERE thread_id = ?", (thread_id,))
