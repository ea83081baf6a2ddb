"""Taking a turn of a conversation so that it can be killed at any moment and gone on with by asking again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from citeloom.citations.csl import style_file
from citeloom.graph.conversation_graph import build_conversation_graph
from citeloom.graph.conversation_state import ConversationState, TurnKind
from citeloom.graph.events import OnEvent
from citeloom.graph.provenance import provenance
from citeloom.graph.research_run import FOREIGN_SCRIPT, foreign_script
from citeloom.graph.run import RunUnderWayError
from citeloom.graph.workbench import Workbench
from citeloom.models.journal import Journal
from citeloom.models.paying import paid_by
from citeloom.stores.checkpoints import keep_latest, open_checkpoints
from citeloom.stores.conversations import ConversationEntry, ConversationRegister
from citeloom.stores.home import Home
from citeloom.stores.lock import run_lock, run_under_way
from citeloom.tools.asking import plain_question

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

_DAY = 86_400  # seconds
_ADDED = ("llm_calls", "journal_hits", "input_tokens", "output_tokens", "cost")


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """The next turn: a question that stands alone, one that may lean on the last, or feedback on the last answer."""

    asked: str
    kind: TurnKind = "follow-up"


@dataclass(frozen=True, slots=True)
class TurnResult:
    """A finished turn: its number from 1, and the answer's JSON record without files."""

    number: int
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Paused:
    """A turn that was begun and is not over."""

    asked: str
    kind: TurnKind


def _ignore(_: object) -> None:
    return None


async def take_turn(
    thread_id: str,
    request: TurnRequest,
    bench: Workbench,
    *,
    on_event: OnEvent = _ignore,
    on_notice: Callable[[str], None] = _ignore,
) -> TurnResult:
    """Answer the next question of a conversation, or go on with the one that was stopped when it is asked again.

    Asking another question gives up the one that was stopped; its model calls stay in the journal. Raises
    `QuestionError` or another `InputError`, `PausedError` when the turn can be gone on with, and other
    `CiteloomError`s for what cannot be mended by trying again.
    """
    asked = plain_question(request.asked)
    if foreign_script(asked, bench):
        on_notice(f"Note: {FOREIGN_SCRIPT}")
    style_file(bench.settings.csl)  # before anything is paid for
    await bench.require_papers()
    register = await asyncio.to_thread(ConversationRegister, bench.home.runs)
    await asyncio.to_thread(register.begin, thread_id)
    async with run_lock(bench.home, thread_id, on_wait=on_notice), open_checkpoints(bench.home.checkpoints) as saver:
        bench.set_scope(thread_id, fresh=False)
        graph = _graph(saver, bench)
        config: Any = {"configurable": {"thread_id": thread_id}}
        state = await graph.aget_state(config)
        await _keep_what_is_over(thread_id, state.values, bool(state.next), bench, register)
        going_on = _pending(state.values, bool(state.next)) == Paused(asked, request.kind)
        if going_on:
            on_notice(f"Going on with this question at {', '.join(state.next)}.")
        before = await bench.usage(thread_id)
        with paid_by(thread_id, bench.budget(thread_id)):
            given: Any = None if going_on else {"asked": asked, "turn_kind": request.kind}
            async for _, event in graph.astream(given, config, stream_mode="custom", subgraphs=True, durability="sync"):
                on_event(event)
        values: Any = (await graph.aget_state(config)).values
        usage = _spent(await bench.usage(thread_id), before)
        kept = await _keep(thread_id, values, usage, bench, register)
        await keep_latest(saver, thread_id)
    return kept


async def paused_turn(thread_id: str, home: Home) -> Paused | None:
    """The turn of a conversation that was begun and is not over."""
    async with open_checkpoints(home.checkpoints) as saver:
        state = await _graph(saver).aget_state({"configurable": {"thread_id": thread_id}})
        return _pending(state.values, bool(state.next))


def _pending(values: Any, has_next: bool) -> Paused | None:
    return Paused(values["asked"], values["turn_kind"]) if has_next and values.get("asked") else None


async def _keep_what_is_over(
    thread_id: str, values: ConversationState | dict[str, Any], has_next: bool, bench: Workbench, register: Any
) -> None:
    """Keep the last turn where the process was killed between its end and its entry in the register."""
    past = values.get("past", [])
    if not past or has_next:
        return
    last = await asyncio.to_thread(register.last_turn, thread_id)
    if last is None or last.number < len(past):
        await _keep(thread_id, values, _spent({}, {}), bench, register)


async def _keep(
    thread_id: str, values: Any, usage: dict[str, Any], bench: Workbench, register: ConversationRegister
) -> TurnResult:
    """The turn that is over, into the register; passages go in here and not into the checkpoints."""
    past, result = values["past"], values["result"]
    shown = {"evidence": result["evidence"], "queries": values["queries"]}
    report = {
        **result["report"],
        "title": past[-1]["question"],
        "library_version": await asyncio.to_thread(bench.library.version),
        **await asyncio.to_thread(provenance, result, shown, bench.library),
    }
    record = {**result, "asked": past[-1]["asked"], "thread_id": thread_id, "usage": usage, "report": report}
    await asyncio.to_thread(register.keep, thread_id, len(past), past[-1]["asked"], past[-1]["question"], record)
    return TurnResult(len(past), record)


def _spent(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What one turn took; the cost is None where a price is not known."""
    return {
        name: None if name == "cost" and after.get(name) is None else (after.get(name) or 0) - (before.get(name) or 0)
        for name in _ADDED
    }


def _graph(saver: AsyncSqliteSaver, bench: Workbench | None = None) -> Any:
    """The graph on its checkpoints; without a bench it can only be asked for its state."""

    async def provide(_: object) -> Workbench:
        assert bench is not None
        return bench

    built = build_conversation_graph() if bench is None else build_conversation_graph(provide)
    return built.compile(checkpointer=saver, name="conversation")


async def delete_conversation(home: Home, thread_id: str) -> ConversationEntry:
    """Forget a conversation with its checkpoints and its count of calls; the journal keeps the answers of models.

    Raises `UnknownConversationError`, and `RunUnderWayError` when a process is at work on it.
    """
    register = await asyncio.to_thread(ConversationRegister, home.runs)
    entry = await asyncio.to_thread(register.get, thread_id)
    if run_under_way(home, entry.thread_id):
        raise RunUnderWayError(f"Conversation {entry.thread_id} is under way in another process.")
    async with run_lock(home, entry.thread_id), open_checkpoints(home.checkpoints) as saver:
        with await asyncio.to_thread(Journal.open, home.journal) as journal:
            await saver.adelete_thread(entry.thread_id)
            await journal.forget(entry.thread_id)
            await asyncio.to_thread(register.delete, entry.thread_id)
    return entry


async def delete_expired(home: Home, days: int, but: str = "") -> list[ConversationEntry]:
    """Delete the conversations whose last turn is more than `days` ago; those under way stay, and the one named."""
    register = await asyncio.to_thread(ConversationRegister, home.runs)
    old = time.time() - days * _DAY
    entries = await asyncio.to_thread(register.all)
    expired = [
        entry
        for entry in entries
        if entry.updated_at < old and entry.thread_id != but and not run_under_way(home, entry.thread_id)
    ]
    free = [entry for entry in expired if not run_under_way(home, entry.thread_id)]
    return [await delete_conversation(home, entry.thread_id) for entry in free]
