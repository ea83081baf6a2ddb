"""Durable, resumable runs of sections, papers and questions, and turns of conversations."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from langgraph.types import Command

from ..citations.references import style_file
from ..drafts.person_questions import PersonAnswer
from ..errors import CiteloomError, InputError, PausedError, WaitingError
from ..experiment import PLOT_FILE
from ..graph.conversation_graph import TurnKind, conversation_graph
from ..graph.graphs import paper_graph, research_graph, section_graph
from ..graph.nodes.ask import check_answer
from ..graph.nodes.finish import render_paper_record, render_record
from ..graph.run_events import Event, OnEvent
from ..graph.session import Session
from ..models.journal.budget import BudgetReachedError
from ..models.journal.journal import Journal
from ..models.journal.records import spent_since
from ..stores.home import Home
from ..stores.run_register import PLOT_SET, ConversationEntry, ConversationRegister, RunRecord, RunRegister
from ..stores.tables import own_id
from ..tools.scope import plain_question
from .result_record import ResultRecord, StoredRecord, add_status_warnings, complete_record, stored
from .run_requests import FOREIGN_SCRIPT, OnNotice, RunRequest, foreign_script

if TYPE_CHECKING:
    from ..stores.home import Checkpoints


_GRAPHS: Final[Mapping[str, Callable[[], Any]]] = {
    "paper": paper_graph,
    "research": research_graph,
    "conversation": conversation_graph,
}


Record = TypeVar("Record", StoredRecord, ResultRecord)


@dataclass(frozen=True, slots=True)
class RunResult(Generic[Record]):
    """A finished run: its JSON record, and whether it was already finished."""

    record: Record
    finished_earlier: bool


class AnsweredError(InputError):
    """An answer came too late: somebody else answered, or the run asks something else or nothing."""

    default_help = "See '{citeloom} runs show' for what it asks now."


class RunUnderWayError(InputError):
    """A run cannot be deleted while a process works on it."""

    default_help = "Wait for it to end, or end it with Ctrl-C."


def ignore(_: object) -> None:
    """Discard events and notices."""


async def run_request(
    request: RunRequest,
    session: Session,
    *,
    on_event: OnEvent = ignore,
    on_notice: OnNotice = ignore,
    answer: object = None,
) -> RunResult[StoredRecord]:
    """Run or resume a request, or return its finished result; `answer` answers the question the run is waiting on.

    Raises `InputError` before storing anything, `WaitingError` if the run asks a person, `PausedError` if it can be
    resumed, `AnswerError` or `AnsweredError` for a refused answer, and other `CiteloomError`s for failures that a retry
    cannot fix.
    """
    if request.thread_id is None:  # a resumed run keeps the preferences that it started with
        session = await session.add_memory()
    await request.require_valid(session, on_notice)
    style_file(session.settings.csl)  # before anything is paid for
    await session.require_papers()
    home = session.home
    register = await asyncio.to_thread(home.runs)
    run = await asyncio.to_thread(begin_run, request, session, register, on_notice)

    def refuse(_: str) -> None:
        raise AnsweredError(f"Run {run.thread_id} was already answered.")

    async with home.run_lock(run.thread_id, on_wait=on_notice if answer is None else refuse):
        run = await asyncio.to_thread(register.get, run.thread_id)
        async with home.open_checkpoints() as saver:
            if run.status == "finished" and run.result is not None:
                if answer is not None:
                    raise AnsweredError(f"Run {run.thread_id} is finished and asks nothing.")
                return await _rerender_finished(run, session, saver)
            with session.run(run.thread_id, fresh=run.fresh):
                return await _advance(request, run, session, register, saver, on_event, on_notice, answer)


def begin_run(request: RunRequest, session: Session, register: RunRegister, on_notice: OnNotice) -> RunRecord:
    """Register a valid request as a new run, or find the run it repeats; blocks."""
    if request.thread_id is not None:
        return register.get(request.thread_id)
    version = session.library.version()
    fingerprint = request.fingerprint(session)
    latest = register.latest(fingerprint)
    if latest is not None and (not request.fresh or (latest.fresh and latest.status != "finished")):
        return latest
    question = request.subject_key()
    before = register.latest_about(question)
    if before is not None and before.library_version != version:
        on_notice(
            f"The library has changed since run {before.thread_id}, so this is a new run; answers on unchanged "
            "passages are reused from the journal."
        )
    records = session.library.records()
    hashes = {key: record.paper.content_hash for key, record in records.items()}
    begun = register.begin(
        own_id(fingerprint) if latest is None else f"{fingerprint}-{secrets.token_hex(6)}",
        fingerprint,
        request.kind,
        request.title,
        {"question": question, "key_marks": session.key_marks(), **request.to_record(session)},
        version,
        fresh=request.fresh,
    )
    register.note_library(version, hashes)
    return begun


async def _advance(
    request: RunRequest,
    run: RunRecord,
    session: Session,
    register: RunRegister,
    saver: Checkpoints,
    on_event: OnEvent,
    on_notice: OnNotice,
    answer: object,
) -> RunResult[StoredRecord]:
    graph = compile_graph(request.kind, saver)
    config: Any = {"configurable": {"thread_id": run.thread_id}}
    state = await graph.aget_state(config)
    # Checkpoints older than the entry in the register belong to a run whose entry was lost.
    earlier = bool(state.created_at) and datetime.fromisoformat(state.created_at).timestamp() < run.started_at
    if earlier and run.fresh:
        await session.journal.forget(run.thread_id)
        await saver.adelete_thread(run.thread_id)
        state = await graph.aget_state(config)
    given: Any = None
    if answer is not None:
        given = await _take_answer(answer, state, run, session, register)
    elif can_resume(state):
        earlier = False
        steps = f"step {', '.join(repr(task.name) for task in state.tasks)}"
        section = f"the {state.values['section']}, " if request.kind == "paper" and "section" in state.values else ""
        on_notice(f"Resuming run {run.thread_id} at {section}{steps}.")
    elif not state.values.get("result"):
        earlier, given = False, request.graph_input()
    try:
        async for event in graph.astream(given, config, context=session, stream_mode="custom", durability="sync"):
            on_event(cast(Event, event))
        state = await graph.aget_state(config)
    except BaseException as error:
        await asyncio.shield(_note_stop(error, run, session, register, saver))
        raise
    if state.interrupts:
        question = state.interrupts[0].value
        detail = f"{question['citeloom']['ask']}: {question['citeloom']['summary']}"
        await asyncio.to_thread(register.mark, run.thread_id, "asking", detail=detail)
        raise WaitingError(run.thread_id, question)
    record = await _complete(state.values["result"], state.values, run, session)
    await asyncio.to_thread(register.mark, run.thread_id, "finished", result=dict(record))
    return RunResult(record, finished_earlier=earlier)


async def validate_answer(given: object, state: Any, run: RunRecord, session: Session) -> PersonAnswer:
    """Validate an answer to the question a run is waiting on; raises `AnswerError` or `AnsweredError`."""
    if not state.interrupts:
        raise AnsweredError(f"Run {run.thread_id} is not asking anything now.")
    asked = state.interrupts[0]
    if isinstance(given, Mapping) and given.get("question") not in (None, "", asked.id):
        raise AnsweredError(f"Run {run.thread_id} is asking something else now: this question was already answered.")
    return await check_answer(state.values, asked.value["citeloom"], given, session)


async def _take_answer(given: object, state: Any, run: RunRecord, session: Session, register: RunRegister) -> Any:
    """Return the command that resumes with a valid answer; raises `BudgetReachedError` if a budget is not raised."""
    answer = await validate_answer(given, state, run, session)
    asked = state.interrupts[0]
    if answer.type == "ignore":
        said, limit = asked.value["citeloom"]["summary"], asked.value["citeloom"]["fields"][0]
        await asyncio.to_thread(register.mark, run.thread_id, "paused", detail=said)
        raise BudgetReachedError(said, flag=f"--{limit['name'].replace('_', '-')}", enough=float(limit["value"]))
    await asyncio.to_thread(register.mark, run.thread_id, "running")
    return Command(resume={asked.id: asdict(answer)})


def compile_graph(kind: str, saver: Checkpoints) -> Any:
    """Return a copy of the graph for a kind of run, with checkpoints; building a new one would be slow."""
    return _GRAPHS.get(kind, section_graph)().copy({"checkpointer": saver})


def can_resume(state: Any) -> bool:
    """Whether a graph continues from this state without input.

    A step whose output is stored without the following checkpoint is in `tasks`, not in `next`. If it was cancelled at
    that moment, it also has an error, at which LangGraph would end.
    """
    return bool(state.next) or bool(state.tasks and not any(task.error for task in state.tasks))


async def _note_stop(
    error: BaseException, run: RunRecord, session: Session, register: RunRegister, saver: Checkpoints
) -> None:
    """Record why a run stopped; remove a run that was rejected before its first answer."""
    usage = await session.usage(run.thread_id)
    if isinstance(error, InputError) and not usage["llm_calls"]:
        await _forget(run.thread_id, session.home, session.journal, saver)
        await asyncio.to_thread(register.delete, run.thread_id)
        return
    paused = isinstance(error, PausedError | asyncio.CancelledError | KeyboardInterrupt)
    stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
    detail = error.message if isinstance(error, CiteloomError) else "interrupted" if stopped else type(error).__name__
    await asyncio.to_thread(register.mark, run.thread_id, "paused" if paused else "failed", detail=detail)


async def _rerender_finished(run: RunRecord, session: Session, saver: Checkpoints) -> RunResult[StoredRecord]:
    """Return the stored result, rendered again without model calls if the citation style or `strict` changed."""
    record = stored(run.result or {})
    settings = session.settings
    style = session.answer_style if run.section == "research" else settings.cite_style
    asked = {"cite_style": style, "csl": settings.csl, "strict": settings.strict}
    if any(record.get(name) != value for name, value in asked.items()):
        graph = compile_graph(run.section, saver)
        values: Any = (await graph.aget_state({"configurable": {"thread_id": run.thread_id}})).values
        # The finished text keeps its citations; later retractions become warnings.
        as_finished = session.with_settings(cite_retracted=True)
        again = await (render_paper_record if run.section == "paper" else render_record)(values, as_finished)
        record = await _complete(again, values, run, session)
    return RunResult(await asyncio.to_thread(add_status_warnings, record, session), finished_earlier=True)


async def _complete(result: dict[str, Any], values: Any, run: RunRecord, session: Session) -> StoredRecord:
    """Complete the record to store; passages are added only here, to keep them out of the checkpoints."""
    own = {"thread_id": run.thread_id, "usage": await session.usage(run.thread_id)}

    def complete() -> StoredRecord:
        record = complete_record(result, values, session.library, run.title, run.library_version, **own)
        return add_status_warnings(record, session)

    return await asyncio.to_thread(complete)


async def delete_run(home: Home, thread_id: str) -> RunRecord:
    """Delete a run with its checkpoints, call counts, jobs, and plots that no other run uses.

    The journal keeps the paid answers. Raises `UnknownRunError`, and `RunUnderWayError` while a process runs it.
    """
    register = await asyncio.to_thread(home.runs)
    run = await asyncio.to_thread(register.get, thread_id)
    await _delete(home, run.thread_id, "Run", register.delete)
    await asyncio.to_thread(_delete_plots, run, home)
    return run


async def _delete(home: Home, thread_id: str, what: str, delete: Callable[[str], None]) -> None:
    """Delete a run or conversation (`what` names it in errors); raises `RunUnderWayError` while a process runs it."""

    def refuse(_: str) -> None:
        raise RunUnderWayError(f"{what} {thread_id} is in progress in another process.")

    async with home.run_lock(thread_id, on_wait=refuse), home.open_checkpoints() as saver:
        with await asyncio.to_thread(home.open_journal) as journal:
            await asyncio.to_thread(home.forget_job, thread_id)
            await _forget(thread_id, home, journal, saver)
            await asyncio.to_thread(delete, thread_id)


def _delete_plots(run: RunRecord, home: Home) -> None:
    shown = (run.request.get("experiment") or {}).get("plots") or ()
    files = [str(plot[PLOT_FILE]) for plot in shown if isinstance(plot, Mapping) and plot.get(PLOT_FILE)]
    names = {name for file in files if PLOT_SET.fullmatch(name := Path(file).parent.name)}
    plots = home.plots()
    for unused in names - home.runs().plot_sets() if names else ():
        plots.remove(unused, plots.names(unused))


async def _forget(thread_id: str, home: Home, journal: Journal, saver: Checkpoints) -> None:
    """Remove a run or conversation from all stores but its register, which comes last so that this can be repeated."""
    await saver.adelete_thread(thread_id)
    owned = await asyncio.to_thread(home.runs().has_owner, thread_id)
    await journal.forget(thread_id, spending=not owned)  # spending of an owned run counts towards its owner's budget


async def run_state(home: Home, thread_id: str) -> Any:
    """Load a run's latest checkpoint: `values`, and in `interrupts` the question it is waiting on."""
    run = await asyncio.to_thread((await asyncio.to_thread(home.runs)).get, thread_id)
    async with home.open_checkpoints() as saver:
        config: Any = {"configurable": {"thread_id": run.thread_id}}
        return await compile_graph(run.section, saver).aget_state(config)


_DAY = 86_400  # seconds
_COUNTS = ("llm_calls", "journal_hits", "input_tokens", "output_tokens", "cost")


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """The next turn: a standalone question, a follow-up, or feedback on the last answer."""

    asked: str
    kind: TurnKind = "follow-up"
    number: int | None = None  # if given, a finished turn with this number is not repeated
    papers: tuple[str, ...] = ()  # keys of papers to search within


@dataclass(frozen=True, slots=True)
class TurnResult:
    """A finished turn: its number, from 1, and the answer's JSON record without files."""

    number: int
    record: StoredRecord


async def take_turn(
    thread_id: str, request: TurnRequest, session: Session, *, on_event: OnEvent = ignore, on_notice: OnNotice = ignore
) -> TurnResult:
    """Run the next turn of a conversation, or resume the interrupted turn if its question is repeated.

    A different question abandons the interrupted turn; its model calls stay in the journal. Raises `QuestionError` or
    another `InputError`, `PausedError` if the turn can be resumed, and other `CiteloomError`s for failures that a
    retry cannot fix.
    """
    session = session.with_settings(interrupts=[])  # conversations never stop to ask
    session = await session.add_memory()
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
                await _store_turn(thread_id, state.values, dict.fromkeys(_COUNTS, 0), session, register)
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
        kept = await _store_turn(thread_id, values, usage, session, register)
        await saver.keep_latest(thread_id)
    return kept


async def paused_turn(thread_id: str, home: Home) -> TurnRequest | None:
    """Return the conversation's unfinished turn, if any."""
    async with home.open_checkpoints() as saver:
        graph = compile_graph("conversation", saver)
        return _pending(await graph.aget_state({"configurable": {"thread_id": thread_id}}))


def _pending(state: Any) -> TurnRequest | None:
    values = state.values
    if not can_resume(state) or not values.get("asked"):
        return None
    return TurnRequest(values["asked"], values["turn_kind"], papers=tuple(values.get("papers") or ()))


async def _store_turn(
    thread_id: str, values: Any, usage: Mapping[str, Any], session: Session, register: ConversationRegister
) -> TurnResult:
    """Store a finished turn; passages are added here, to keep them out of the checkpoints."""
    past, result, library = values["past"], values["result"], session.library
    asked, question = past[-1]["asked"], past[-1]["question"]
    shown = {"evidence": result["evidence"], "queries": values["queries"]}

    def keep() -> TurnResult:
        own = {"asked": asked, "thread_id": thread_id, "usage": usage}
        record = add_status_warnings(
            complete_record(result, shown, library, question, library.version(), **own), session
        )
        register.keep(thread_id, len(past), asked, question, dict(record))
        return TurnResult(len(past), record)

    return await asyncio.to_thread(keep)


async def delete_conversation(home: Home, thread_id: str) -> ConversationEntry:
    """Delete a conversation; the journal keeps its answers.

    Raises `UnknownConversationError` and `RunUnderWayError`.
    """
    register = await asyncio.to_thread(home.conversations)
    entry = await asyncio.to_thread(register.get, thread_id)
    await _delete(home, entry.thread_id, "Conversation", register.delete)
    return entry


async def delete_expired(home: Home, days: int, but: str = "") -> list[ConversationEntry]:
    """Delete conversations idle for more than `days`, except `but` and those in progress."""
    expired = await expired_conversations(home, days)
    return [await delete_conversation(home, entry.thread_id) for entry in expired if entry.thread_id != but]


async def expired_conversations(home: Home, days: int) -> list[ConversationEntry]:
    """Find conversations idle for more than `days`, except those in progress."""
    register = await asyncio.to_thread(home.conversations)
    old = time.time() - days * _DAY
    entries = await asyncio.to_thread(register.all)
    return [
        entry
        for entry in entries
        if entry.updated_at < old and not await asyncio.to_thread(home.run_under_way, entry.thread_id)
    ]
