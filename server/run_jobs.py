"""Starts and resumes jobs: runs and turns of conversations, with the limits that a request sets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from ..api.events import EventRecorder
from ..graph.conversation_state import TurnKind
from ..graph.session import Session
from ..runs.conversation import TurnRequest, delete_conversation, take_turn
from ..runs.execution import begin_run, delete_run, ignore
from ..runs.research import ResearchRequest
from ..runs.result_record import public_record
from ..runs.resuming import request_to_resume, require_same_run, settings_to_resume
from ..runs.section_request import SectionRequest
from ..runs.service import run_and_save
from ..runs.transcript import turn_record
from ..stores.backends import backend_of
from ..stores.job_records import JobOrder
from ..stores.run_records import ConversationEntry, RunRecord, UnknownConversationError, UnknownRunError
from ..tools.questions.validation import plain_question
from .job import Emit, Job, Work
from .jobs import Jobs
from .orders import Orders, conversation_deleted, run_deleted
from .stored_jobs import ended_job


class Limits(TypedDict, total=False):
    """Settings that a request may set for its own run."""

    strict: bool
    max_calls: int
    max_tokens: int
    max_cost: float


@dataclass(frozen=True, slots=True)
class RunJobs:
    """Makes jobs of requests; the session belongs to the server, and limits to one job."""

    session: Session
    jobs: Jobs
    orders: Orders

    async def find_run(self, run_id: str) -> RunRecord:
        """The run that an order is about; raises `UnknownRunError`, or `ServerError` if it was deleted just now."""
        return await self.orders.find(lambda: backend_of(self.session.home).runs().get(run_id), run_deleted(run_id))

    async def find_conversation(self, thread_id: str) -> ConversationEntry:
        """The conversation that an order is about; raises as `find_run` does."""
        home, deleted = self.session.home, conversation_deleted(thread_id)
        return await self.orders.find(lambda: backend_of(home).conversations().get(thread_id), deleted)

    @asynccontextmanager
    async def order_on(self, run: RunRecord) -> AsyncIterator[None]:
        """Take an order on a run that was found; raises `ServerError` with status 409 if it was deleted meanwhile."""
        async with self.orders.on(run.thread_id, run_deleted(run.thread_id)):
            if not await asyncio.to_thread(self._is_registered, run.thread_id):
                raise _unknown_run(run.thread_id)
            yield

    async def delete_run(self, run_id: str) -> None:
        """Delete the run with exactly this id, and its plots; raises `ServerError` while it is active."""
        run = await self.find_run(run_id)
        if run.thread_id != run_id:
            raise _unknown_run(run_id)
        async with self.order_on(run):
            await self.jobs.require_idle(run_id)
            await delete_run(self.session.home, run_id)
            await self.orders.end(run_deleted(run_id))
            self.jobs.forget(run_id)

    async def delete_conversation(self, thread_id: str) -> None:
        """Delete the conversation with exactly this id; raises `ServerError` while it is active."""
        entry = await self.find_conversation(thread_id)
        if entry.thread_id != thread_id:
            raise _unknown_conversation(thread_id)
        async with self.orders.on(thread_id, conversation_deleted(thread_id)):
            await self.jobs.require_idle(thread_id)
            await delete_conversation(self.session.home, thread_id)
            await self.orders.end(conversation_deleted(thread_id))
            self.jobs.forget(thread_id)

    async def start_run(self, request: SectionRequest | ResearchRequest, limits: Limits) -> Job:
        """Start a run, or join it when it is active; a finished one ends at once with its result.

        Raises `InputError` before anything is stored, and `ServerError` when the server is busy.
        """
        session = self.session.with_settings(**limits)
        await request.require_valid(session, ignore)
        await session.require_papers()
        register = await asyncio.to_thread(backend_of(session.home).runs)
        while True:
            run = await asyncio.to_thread(begin_run, request, session, register, ignore)
            order = JobOrder(run.thread_id, "run", {"limits": dict(limits)})
            async with self.orders.on(run.thread_id, run_deleted(run.thread_id)):
                if await asyncio.to_thread(self._is_registered, run.thread_id):  # or else it was deleted in between
                    return await self.jobs.start(order, _run_work(replace(request, thread_id=run.thread_id), session))

    async def resume_run(self, run_id: str, limits: Limits) -> Job:
        """Resume a paused or killed run by its id, with the settings that it was begun with.

        Raises `UnknownRunError`, or `InputError` when library, prompts or endpoint have changed.
        """
        run = await self.find_run(run_id)
        request, session = await asyncio.to_thread(self._to_resume, run, limits)
        order = JobOrder(run.thread_id, "run", {"limits": dict(limits)})
        async with self.order_on(run):
            return await self.jobs.start(order, _run_work(request, session))

    async def ask(self, thread_id: str, asked: str, kind: TurnKind, limits: Limits) -> Job:
        """Start the next turn of a conversation, or join it when the same one is active.

        Raises `QuestionError`, and `ServerError` with status 409 while another turn is active.
        """
        thread_id = (await self.find_conversation(thread_id)).thread_id
        request: dict[str, Any] = {"asked": plain_question(asked), "kind": kind, "limits": dict(limits)}
        await self.session.require_papers()
        async with self.orders.on(thread_id, conversation_deleted(thread_id)):
            request["number"] = await asyncio.to_thread(self._next_number, thread_id)
            return await self.jobs.start(JobOrder(thread_id, "turn", request), self._turn_work(thread_id, request))

    async def find(self, order: Mapping[str, Any]) -> Job | None:
        """The job of an earlier request, or its end as the registers have it; a paused run is resumed.

        None when nothing is known of it any more, or when a question is to be asked again.
        """
        job = await self.jobs.find(order["id"])
        if job is not None and job.order.request == order["request"] and job.state != "paused":
            return job
        if order["kind"] == "turn":
            return await asyncio.to_thread(self._finished_turn, order)
        try:
            return await self.resume_run(order["id"], order["request"]["limits"])
        except UnknownRunError:
            return None

    async def resume_order(self, order: JobOrder) -> None:
        """Start again what an earlier server left unfinished; raises `CiteloomError` when that cannot be done."""
        limits: Any = order.request.get("limits", {})
        if order.kind == "run":
            await self.resume_run(order.id, limits)
        else:
            await self.jobs.start(order, self._turn_work(order.id, order.request))

    def _next_number(self, thread_id: str) -> int:
        entry = backend_of(self.session.home).conversations().get(thread_id)
        if entry.thread_id != thread_id:
            raise _unknown_conversation(thread_id)
        return entry.turns + 1

    def _is_registered(self, run_id: str) -> bool:
        """Whether there is a run with exactly this id."""
        with suppress(UnknownRunError):
            return backend_of(self.session.home).runs().get(run_id).thread_id == run_id
        return False

    def _finished_turn(self, order: Mapping[str, Any]) -> Job | None:
        turns = backend_of(self.session.home).conversations().turns(order["id"])
        given = order["request"]
        turn = next((turn for turn in turns if (turn.number, turn.asked) == (given["number"], given["asked"])), None)
        return None if turn is None else ended_job(order["id"], "turn", turn_record(turn))

    def _to_resume(self, run: RunRecord, limits: Limits) -> tuple[SectionRequest | ResearchRequest, Session]:
        current = self.session
        settings = settings_to_resume(run, current.settings, current.home, limits)
        session = current.with_all_settings(settings)
        request = request_to_resume(run)
        if run.status != "finished":
            require_same_run(run, request, session)
        return request, session

    def _turn_work(self, thread_id: str, request: Mapping[str, Any]) -> Work:
        session = self.session.with_settings(**request["limits"])

        async def work(emit: Emit) -> Mapping[str, Any]:
            recorder = _recorder(emit)
            given = TurnRequest(request["asked"], request["kind"], request["number"])
            turn = await take_turn(thread_id, given, session, on_event=recorder, on_notice=_notices(emit))
            record: dict[str, Any] = {**public_record(turn.record), "number": turn.number}
            recorder.done(record)
            return record

        return work


def _unknown_run(run_id: str) -> UnknownRunError:
    return UnknownRunError(f"There is no run {run_id!r:.200}.")


def _unknown_conversation(thread_id: str) -> UnknownConversationError:
    return UnknownConversationError(f"There is no conversation {thread_id!r:.200}.")


def _run_work(request: SectionRequest | ResearchRequest, session: Session) -> Work:
    async def work(emit: Emit) -> Mapping[str, Any]:
        recorder = _recorder(emit)
        saved = await run_and_save(request, session, on_event=recorder, on_notice=_notices(emit))
        recorder.done(saved.record)
        return saved.record

    return work


def _recorder(emit: Emit) -> EventRecorder:
    return EventRecorder(lambda event: emit(event["kind"], event))


def _notices(emit: Emit) -> Any:
    return lambda text: emit("notice", {"text": text})
