"""Durable conversation turns: a killed turn resumes when its question is asked again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..citations.references import style_file
from ..graph.conversation_graph import TurnKind
from ..graph.run_events import OnEvent
from ..graph.session import Session
from ..models.journal.records import spent_since
from ..stores.home import Home
from ..stores.run_register import ConversationEntry, ConversationRegister
from ..tools.scope import plain_question
from .execution import can_resume, compile_graph, ignore, locked_for_deletion
from .publication_notices import with_notices
from .result_record import StoredRecord, complete_record, stored
from .run_requests import FOREIGN_SCRIPT, OnNotice, foreign_script

_DAY = 86_400  # seconds
_COUNTS = ("llm_calls", "journal_hits", "input_tokens", "output_tokens", "cost")


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """The next turn: a standalone question, a follow-up, or feedback on the last answer."""

    asked: str
    kind: TurnKind = "follow-up"
    number: int | None = None  # its number, if known, so that a finished turn is not repeated
    papers: tuple[str, ...] = ()  # keys of the only papers to look into


@dataclass(frozen=True, slots=True)
class TurnResult:
    """A finished turn: its number from 1, and the answer's JSON record without files."""

    number: int
    record: StoredRecord


async def take_turn(
    thread_id: str,
    request: TurnRequest,
    session: Session,
    *,
    on_event: OnEvent = ignore,
    on_notice: OnNotice = ignore,
) -> TurnResult:
    """Run the next turn of a conversation, or resume the interrupted one if its question is repeated.

    Another question abandons the interrupted turn; its model calls stay in the journal. Raises `QuestionError` or
    another `InputError`, `PausedError` if the turn can be resumed, and other `CiteloomError`s for failures that a
    retry cannot fix.
    """
    session = session.with_settings(interrupts=[])  # nobody is asked in a conversation
    session = await session.with_memory()
    asked = plain_question(request.asked)
    if foreign_script(asked, session):
        on_notice(f"Note: {FOREIGN_SCRIPT}")
    style_file(session.settings.csl)  # before anything is paid for
    await session.require_papers()
    home = session.home
    register = await asyncio.to_thread(home.conversations)
    await asyncio.to_thread(register.begin, thread_id)
    async with home.run_lock(thread_id, on_wait=on_notice), home.open_checkpoints() as saver:
        graph = compile_graph("conversation", saver)
        config: Any = {"configurable": {"thread_id": thread_id}}
        state = await graph.aget_state(config)
        if (past := state.values.get("past")) and not can_resume(state):
            # The process may have been killed after finishing the last turn, before registering or reporting it.
            last = await asyncio.to_thread(register.last_turn, thread_id)
            if last is None or last.number < len(past):
                await _keep(thread_id, state.values, dict.fromkeys(_COUNTS, 0), session, register)
        turns = [] if request.number is None else await asyncio.to_thread(register.turns, thread_id)
        for turn in turns:
            if (turn.number, turn.asked) == (request.number, asked):
                return TurnResult(turn.number, stored(turn.record))
        resumes = _pending(state) == TurnRequest(asked, request.kind, papers=request.papers)
        if resumes:
            on_notice(f"Resuming this question at step {', '.join(repr(task.name) for task in state.tasks)}.")
        before = await session.usage(thread_id)
        with session.run(thread_id):
            asks = {"asked": asked, "turn_kind": request.kind, "papers": list(request.papers)}
            given: Any = None if resumes else asks
            options: Any = {"stream_mode": "custom", "subgraphs": True, "durability": "sync"}
            async for _, event in graph.astream(given, config, context=session, **options):
                on_event(event)
        values: Any = (await graph.aget_state(config)).values
        usage = spent_since(before, await session.usage(thread_id))
        kept = await _keep(thread_id, values, usage, session, register)
        await saver.keep_latest(thread_id)
    return kept


async def paused_turn(thread_id: str, home: Home) -> TurnRequest | None:
    """The conversation's unfinished turn, if any."""
    async with home.open_checkpoints() as saver:
        graph = compile_graph("conversation", saver)
        return _pending(await graph.aget_state({"configurable": {"thread_id": thread_id}}))


def _pending(state: Any) -> TurnRequest | None:
    values = state.values
    if not can_resume(state) or not values.get("asked"):
        return None
    return TurnRequest(values["asked"], values["turn_kind"], papers=tuple(values.get("papers") or ()))


async def _keep(
    thread_id: str, values: Any, usage: Mapping[str, Any], session: Session, register: ConversationRegister
) -> TurnResult:
    """Store a finished turn; passages are added here, to keep them out of the checkpoints."""
    past, result, library = values["past"], values["result"], session.library
    asked, question = past[-1]["asked"], past[-1]["question"]
    shown = {"evidence": result["evidence"], "queries": values["queries"]}

    def keep() -> TurnResult:
        own = {"asked": asked, "thread_id": thread_id, "usage": usage}
        record = with_notices(complete_record(result, shown, library, question, library.version(), **own), session)
        register.keep(thread_id, len(past), asked, question, dict(record))
        return TurnResult(len(past), record)

    return await asyncio.to_thread(keep)


async def delete_conversation(home: Home, thread_id: str) -> ConversationEntry:
    """Delete all of a conversation but journaled answers; raises `UnknownConversationError` and `RunUnderWayError`."""
    register = await asyncio.to_thread(home.conversations)
    entry = await asyncio.to_thread(register.get, thread_id)
    async with locked_for_deletion(home, entry.thread_id, "Conversation") as (saver, journal):
        await saver.adelete_thread(entry.thread_id)
        owned = await asyncio.to_thread(home.runs().has_owner, entry.thread_id)
        await journal.forget(entry.thread_id, spending=not owned)  # which counts for a person's budget
        await asyncio.to_thread(register.delete, entry.thread_id)
    return entry


async def delete_expired(home: Home, days: int, but: str = "") -> list[ConversationEntry]:
    """Delete conversations idle for more than `days`, except `but` and those in progress."""
    expired = await expired_conversations(home, days)
    return [await delete_conversation(home, entry.thread_id) for entry in expired if entry.thread_id != but]


async def expired_conversations(home: Home, days: int) -> list[ConversationEntry]:
    """Conversations idle for more than `days`, except those in progress."""
    register = await asyncio.to_thread(home.conversations)
    old = time.time() - days * _DAY
    entries = await asyncio.to_thread(register.all)
    return [
        entry
        for entry in entries
        if entry.updated_at < old and not await asyncio.to_thread(home.run_under_way, entry.thread_id)
    ]
