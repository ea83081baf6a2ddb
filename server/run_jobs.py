"""Starts, resumes, finds and deletes jobs for runs and conversation turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from ..api import homes, model_setup, people, running, serving, stored_runs
from ..api.conversation import TurnKind, TurnRequest, delete_conversation, paused_turn, take_turn
from ..api.evidence_tables import aagree, agreement_of, aload_table, amake_table, id_of_agreement, id_of_table
from ..api.run_options import RunLimits, SteeredOptions
from ..api.run_texts import NotEditedError, find_text, public_record, stored
from ..api.stored_runs import RunRecord, UnknownConversationError, UnknownRunError, delete_run, load_resumable
from ..errors import InputError
from .job import STOPPED, Emit, EventLog, Job
from .jobs import Jobs
from .problems import Problem, ServerError, problem
from .request_models import AgreementBody, TableBody, TurnOptions

_STORED_EPOCH: Final = "stored"


@dataclass(frozen=True, slots=True)
class RunJobs:
    session: serving.Session
    jobs: Jobs
    orders: Orders

    async def find_run(self, run_id: str) -> RunRecord:
        """Find a run; raises `UnknownRunError`, or `ServerError` if it was just deleted."""
        return await self.orders.find(lambda: self.session.home.runs().get(run_id), run_deleted(run_id))

    async def find_text(self, text_id: str) -> RunRecord:
        """Find a run, or an answer by `CONVERSATION.NUMBER`; raises what `find_run` raises."""
        return await self.orders.find(lambda: find_text(self.session.home, text_id), run_deleted(text_id))

    async def find_conversation(self, thread_id: str) -> stored_runs.ConversationEntry:
        home, deleted = self.session.home, conversation_deleted(thread_id)
        return await self.orders.find(lambda: home.conversations().get(thread_id), deleted)

    async def find_turn(self, thread_id: str, number: int) -> tuple[str, stored_runs.KeptTurn]:
        """Find a finished turn and the id of its conversation; raises `ServerError` if no turn has this number."""
        entry = await asyncio.to_thread(lambda: self.session.home.conversations().get(thread_id))
        turn = await asyncio.to_thread(stored_runs.find_turn, self.session.home, entry.thread_id, number)
        if turn is None:
            raise ServerError(404, f"Conversation {entry.thread_id} has no turn {number}.")
        return entry.thread_id, turn

    @asynccontextmanager
    async def lock_run(self, run: RunRecord) -> AsyncIterator[None]:
        """Lock a run or answer while changing it; raises `ServerError` with status 409 if it was deleted meanwhile."""
        async with self.orders.lock(run_deleted(run.thread_id)):
            if not await asyncio.to_thread(self._is_registered, run.thread_id):
                raise _unknown_run(run.thread_id)
            yield

    async def delete_run(self, run_id: str) -> None:
        """Delete the run with exactly this id, and its plots; raises `ServerError` while it is active."""
        run = await self.find_run(run_id)
        if run.thread_id != run_id:
            raise _unknown_run(run_id)
        async with self.lock_run(run):
            await self.jobs.require_idle(run_id)
            await delete_run(self.session.home, run_id)
            await self.orders.end(run_deleted(run_id))
            self.jobs.forget(run_id)

    async def delete_conversation(self, thread_id: str) -> None:
        """Delete the conversation with exactly this id; raises `ServerError` while it is active."""
        entry = await self.find_conversation(thread_id)
        if entry.thread_id != thread_id:
            raise _unknown_conversation(thread_id)
        async with self.orders.lock(conversation_deleted(thread_id)):
            await self.jobs.require_idle(thread_id)
            await delete_conversation(self.session.home, thread_id)
            await self.orders.end(conversation_deleted(thread_id))
            self.jobs.forget(thread_id)

    async def start_run(self, request: running.RunRequest, limits: RunLimits) -> Job:
        """Start a run or join it; a finished one answers at once. Raises `InputError`, or `ServerError` if too busy."""
        session = await self.session.with_settings(**limits.changes()).add_memory()
        while True:
            run = await running.begin_run(request, session)
            order = serving.JobOrder(run.thread_id, "run", {"limits": limits.changes()})
            work = partial(_run, replace(request, thread_id=run.thread_id), session)
            async with self.orders.lock(run_deleted(run.thread_id)):
                if await asyncio.to_thread(self._is_registered, run.thread_id):  # otherwise it was deleted meanwhile
                    return await self.jobs.start(order, work)

    async def answer_run(self, run_id: str, answer: Mapping[str, Any]) -> Job:
        """Answer a run's question and resume it; raises `AnswerError`, or `AnsweredError` if another came first."""
        run = await self.find_run(run_id)
        given = running.sign_answer(answer, ", ".join(filter(None, (people.acting.get(), answer.get("by")))))
        await running.require_valid_answer(self.session, run.thread_id, given)
        known = await self.jobs.find(run.thread_id)  # which has the limits that the run was started with
        limits = SteeredOptions(**known.order.request.get("limits", {})) if known else RunLimits()
        job = await self.resume_run(run.thread_id, limits, given)
        if job.order.request.get("answer") != given:
            raise running.AnsweredError(f"Run {run.thread_id} was already answered.")
        return job

    async def resume_run(self, run_id: str, limits: RunLimits, answer: object = None) -> Job:
        """Resume a run with its settings, and with an answer to its question.

        Raises `UnknownRunError`, or `InputError` if library or prompts changed.
        """
        run = await self.find_run(run_id)
        current, given = self.session, limits.changes()
        loading = asyncio.to_thread(load_resumable, run.thread_id, current.home, current.settings, given)
        registered, request, settings = await loading
        session = current.with_all_settings(settings)
        if run.status != "finished":
            await asyncio.to_thread(running.require_same_run, registered, request, session)
        async with self.lock_run(run):
            order = serving.JobOrder(run.thread_id, "run", {"limits": given, **({"answer": answer} if answer else {})})
            return await self.jobs.start(order, partial(_run, request, session, answer=answer))

    async def ask(
        self, thread_id: str, asked: str, kind: TurnKind, limits: TurnOptions, papers: Sequence[str] = ()
    ) -> Job:
        """Start or join a conversation's next turn; raises `QuestionError`, or `ServerError` during another turn."""
        thread_id = (await self.find_conversation(thread_id)).thread_id
        request: dict[str, Any] = {"asked": running.plain_question(asked), "kind": kind, "limits": limits.changes()}
        request |= {"papers": list(papers)} if papers else {}
        await self.session.require_papers()
        chosen = limits.chat_model
        if chosen not in (None, self.session.settings.chat_model):
            offered = await model_setup.aoffered_models(self.session)
            if chosen not in offered:
                known = f"There is {', '.join(offered[:10])}." if offered else "Choose one in the settings."
                raise InputError(f"chat_model: {chosen!r:.100} is not offered here.", help=known)
        async with self.orders.lock(conversation_deleted(thread_id)):
            entry = await asyncio.to_thread(lambda: self.session.home.conversations().get(thread_id))
            if entry.thread_id != thread_id:
                raise _unknown_conversation(thread_id)
            return await self.resume_order(serving.JobOrder(thread_id, "turn", {**request, "number": entry.turns + 1}))

    async def make_table(self, asked: TableBody | AgreementBody) -> Job:
        """Make or complete a table, or join that job; raises `ServerError` while it is made with other columns."""
        await self.session.require_papers()
        question, columns = (asked.claim, []) if isinstance(asked, AgreementBody) else (asked.question, asked.columns)
        papers, agree = list(asked.papers), isinstance(asked, AgreementBody)
        request = {"question": question, "columns": list(columns), "papers": papers, "agree": agree}
        name = (id_of_agreement if agree else id_of_table)(question, papers)
        return await self.resume_order(serving.JobOrder(name, "table", {**request, "limits": asked.changes()}))

    async def find(self, order: serving.JobOrder) -> Job | None:
        """The job of an earlier request or its stored outcome, resumed if paused; None if it is to be asked again."""
        job = await self.jobs.find(order.id)
        if job is not None and job.order.request == order.request and job.state != "paused":
            return job
        if order.kind == "turn":
            home, number = self.session.home, order.request["number"]
            turn = await asyncio.to_thread(stored_runs.find_turn, home, order.id, number)
            if turn is None or turn.asked != order.request["asked"]:
                return None
            return _ended_job(order.id, "turn", stored_runs.turn_record(turn))
        with suppress(UnknownRunError):
            return await self.resume_order(order)
        return None

    async def resume_order(self, order: serving.JobOrder) -> Job:
        """Restart a job that an earlier server left unfinished; raises `CiteloomError` if impossible."""
        if order.kind == "run":
            return await self.resume_run(order.id, SteeredOptions(**order.request.get("limits", {})))
        if order.kind == "table":
            return await self.jobs.start(order, partial(_make_table, order.request, self.session))
        return await self.jobs.start(order, partial(self._take_turn, order.id, order.request))

    def _is_registered(self, run_id: str) -> bool:
        with suppress(UnknownRunError):
            return find_text(self.session.home, run_id).thread_id == run_id
        return False

    async def _take_turn(self, thread_id: str, request: Mapping[str, Any], emit: Emit) -> Mapping[str, Any]:
        session, recorder = self.session.with_settings(**request["limits"]), _recorder(emit)
        papers = tuple(request.get("papers", ()))
        given = TurnRequest(request["asked"], request["kind"], request["number"], papers)
        turn = await take_turn(thread_id, given, session, on_event=recorder, on_notice=_notices(emit))
        record: dict[str, Any] = {**public_record(turn.record), "number": turn.number}
        recorder.emit_done(record)
        return record


def _unknown_run(run_id: str) -> UnknownRunError:
    return UnknownRunError(f"There is no run {run_id!r:.200}.")


def _unknown_conversation(thread_id: str) -> stored_runs.UnknownConversationError:
    return stored_runs.UnknownConversationError(f"There is no conversation {thread_id!r:.200}.")


async def _run(
    request: running.RunRequest, session: serving.Session, emit: Emit, *, answer: object = None
) -> Mapping[str, Any]:
    recorder = _recorder(emit)
    saved = await running.run_and_save(request, session, on_event=recorder, on_notice=_notices(emit), answer=answer)
    recorder.emit_done(saved.record)
    return saved.record


async def _make_table(request: Mapping[str, Any], session: serving.Session, emit: Emit) -> Mapping[str, Any]:
    def show(text: str) -> None:
        emit("stage", {"source": "citeloom", "kind": "stage", "stage": "table", "text": text})

    limited, papers = session.with_settings(**request["limits"]), request["papers"]
    if request["agree"]:
        return await aagree(limited, request["question"], papers=papers, on_progress=show)
    return await amake_table(limited, request["question"], columns=request["columns"], papers=papers, on_progress=show)


def _recorder(emit: Emit) -> running.EventRecorder:
    return running.EventRecorder(lambda event: emit(event["kind"], event))


def _notices(emit: Emit) -> Any:
    return lambda text: emit("notice", {"text": text})


async def load_ended_run(run_id: str, home: homes.Home) -> Job:
    """Load the outcome of another process's run; raises `UnknownRunError`, or `RunUnderWayError` before its end."""
    run = await asyncio.to_thread(lambda: home.runs().get(run_id))
    if run.status == "finished" and run.result is not None:
        return _ended_job(run.thread_id, "run", public_record(stored(run.result)))
    if await asyncio.to_thread(home.run_under_way, run.thread_id):
        under_way = f"Run {run.thread_id} is under way in another process."
        raise serving.RunUnderWayError(under_way, help="Wait for it to end.")
    failed = problem(502, run.detail or "The run failed.") if run.status == "failed" else None
    return _ended_job(run.thread_id, "run", problem=failed)


async def load_ended_turn(thread_id: str, home: homes.Home) -> Job:
    """Load the outcome of the last turn; raises `UnknownConversationError`, or `ServerError` if there is no turn."""
    entry = await asyncio.to_thread(lambda: home.conversations().get(thread_id))
    if await paused_turn(entry.thread_id, home) is not None:
        return _ended_job(entry.thread_id, "turn")
    last = await asyncio.to_thread(lambda: home.conversations().last_turn(entry.thread_id))
    if last is None:
        raise ServerError(404, f"Conversation {entry.thread_id}: nothing was asked yet.")
    return _ended_job(entry.thread_id, "turn", stored_runs.turn_record(last))


async def load_ended_table(table_id: str, session: serving.Session) -> Job:
    """Load the table made by a job that no server knows any more; raises `UnknownTableError`."""
    table = await aload_table(session, table_id)
    return _ended_job(table["table_id"], "table", agreement_of(table) or table)


def _ended_job(
    job_id: str, kind: serving.JobKind, result: Mapping[str, Any] | None = None, problem: Problem | None = None
) -> Job:
    """Build a job that ended earlier with a result or a problem, or was stopped; its only event is that end."""
    log = EventLog(_STORED_EPOCH)
    if result is not None:
        running.EventRecorder(lambda event: log.append(event["kind"], event)).emit_done(result)
    else:
        log.append("error" if problem else "stopped", problem or STOPPED)
    log.close()
    state: serving.JobState = "finished" if result is not None else "failed" if problem else "paused"
    return Job(serving.JobOrder(job_id, kind, {}), log, state, result, problem)


T = TypeVar("T")
# The connection of the current request.
connection: ContextVar[str] = ContextVar("connection of the current request", default="")
_GONE: Final = (UnknownRunError, UnknownConversationError, serving.UnknownPaperError)
_POLL_INTERVAL: Final = 0.05  # seconds
_TIMEOUT: Final = 30.0  # seconds to wait for another server


@dataclass(slots=True)
class Orders:
    """Serialises changes and deletions, also across servers that share a database; used from one event loop."""

    _endings: serving.RecentEndings | None = None
    _locks: serving.CallLocks | None = None
    _here: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def find(self, find: Callable[[], T], ending: str) -> T:
        """Find a request's target; raises `ServerError` if the `ending` (its deletion) just happened."""
        try:
            return await asyncio.to_thread(find)
        except (*_GONE, NotEditedError) as error:
            async with self._lock(ending):
                pass  # waits for an ending under way, which is then recorded
            if await self.ended_by_another(ending):
                raise _conflict(ending) from error
            raise

    @asynccontextmanager
    async def lock(self, ending: str) -> AsyncIterator[None]:
        """Lock the target of an `ending` while changing it; raises `ServerError` if the `ending` came first."""
        async with self._lock(ending):
            with conflicts(ending):
                yield

    async def end(self, ending: str) -> None:
        if self._endings is not None:
            await asyncio.to_thread(self._endings.add, ending, connection.get())

    async def ended_by_another(self, ending: str) -> bool:
        endings = self._endings
        return endings is not None and await asyncio.to_thread(endings.ended_by_another, ending, connection.get())

    def close(self) -> None:
        if self._locks is not None:
            self._locks.close()

    @asynccontextmanager
    async def _lock(self, ending: str) -> AsyncIterator[None]:
        async with self._here.setdefault(ending, asyncio.Lock()):
            if self._locks is None:
                yield
                return
            key, until = f"order:{ending}", asyncio.get_running_loop().time() + _TIMEOUT
            while not (await taken if isawaitable(taken := self._locks.try_acquire(key)) else taken):
                if asyncio.get_running_loop().time() > until:
                    raise ServerError(
                        503, "Another request is changing the same item.", help="Ask again in a moment.", retry_after=5
                    )
                await asyncio.sleep(_POLL_INTERVAL)
            try:
                yield
            finally:
                self._locks.release(key)


@contextmanager
def conflicts(ending: str) -> Iterator[None]:
    """Turn "not found" errors into `ServerError` with status 409."""
    try:
        yield
    except _GONE as error:
        raise _conflict(ending) from error


def run_deleted(run_id: str) -> str:
    conversation, _, number = run_id.rpartition(".")
    is_answer = conversation and number.isdecimal()
    return conversation_deleted(conversation) if is_answer else f"Run {run_id:.200} was deleted"


def conversation_deleted(thread_id: str) -> str:
    return f"Conversation {thread_id:.200} was deleted"


def paper_removed(key: str) -> str:
    return f"Paper {key:.200} was removed"


def edit_withdrawn(run_id: str, position: int | None = None) -> str:
    return f"The edit of {'a sentence' if position is None else f'sentence {position}'} of run {run_id} was withdrawn"


def _conflict(ending: str) -> ServerError:
    return ServerError(409, f"{ending} by another request.")
