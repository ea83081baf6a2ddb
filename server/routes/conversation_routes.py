"""Routes to create, list, ask, stop, export and delete conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from ...api import stored_runs
from ...api.conversation import TurnKind, paused_turn
from ...api.library_search import akeys_within
from ...api.results import ConversationSummary
from ...api.serving import JobEntry
from .. import response_models
from ..job import Job, active_record
from ..job_requests import JobCall, event_stream
from ..request_models import ImproveBody, LabelBody, Limit, Offset, QuestionBody, Words
from ..response_models import event_answers, job_answers, problems
from ..run_jobs import conversation_deleted, load_ended_turn
from ..server_state import StateOf

router = APIRouter(prefix="/conversations", tags=["conversations"])


@router.post("", status_code=201, responses=problems(409))
async def create_conversation(response: Response, state: StateOf) -> response_models.ListedConversation:
    """Begin a conversation."""
    entry = await asyncio.to_thread(stored_runs.begin_conversation, state.session.home)
    response.headers["Location"] = f"/api/v1/conversations/{entry.thread_id}"
    return {**stored_runs.conversation_summary(entry), "active": None}


@router.get("", responses=problems())
async def get_conversations(
    state: StateOf, limit: Limit = 50, offset: Offset = 0, q: Words = "", archived: bool = False
) -> response_models.ConversationList:
    """The conversations, or the archived ones, the latest first; with `q`, those that have all of these words."""
    entries = await asyncio.to_thread(stored_runs.list_conversations, state.session.home, q, archived=archived)
    jobs = await state.jobs.known()
    records = [stored_runs.conversation_summary(entry) for entry in entries[offset : offset + limit]]
    return {"conversations": [_with_job(record, jobs) for record in records], "total": len(entries)}


@router.get("/{thread_id}", responses=problems(404))
async def get_conversation(thread_id: str, state: StateOf) -> response_models.ConversationWithJob:
    """A conversation by its id or a prefix of it, with its finished turns, and the one that is active or paused."""
    home = state.session.home
    entry = await asyncio.to_thread(lambda: home.conversations().get(thread_id))
    turns = await asyncio.to_thread(lambda: home.conversations().turns(entry.thread_id))
    listed = _with_job(stored_runs.conversation_summary(entry), await state.jobs.known())
    paused = None if listed["active"] else await paused_turn(entry.thread_id, home)
    return {
        **stored_runs.conversation_record(entry, turns),
        "title": listed["title"],
        "active": listed["active"],
        "paused": {"asked": paused.asked, "kind": paused.kind} if paused else None,
    }


@router.patch("/{thread_id}", responses=problems(404, 409))
async def label_conversation(thread_id: str, body: LabelBody, state: StateOf) -> response_models.ListedConversation:
    """Name a conversation, or put it away or back."""
    home, found = state.session.home, await state.runs.find_conversation(thread_id)
    async with state.orders.on(conversation_deleted(found.thread_id)):
        label = stored_runs.label_conversation
        entry = await asyncio.to_thread(label, home, found.thread_id, **body.model_dump())
    return _with_job(stored_runs.conversation_summary(entry), await state.jobs.known())


@router.post("/{thread_id}/turns", responses=job_answers(404), response_class=Response)
async def ask(thread_id: str, body: QuestionBody, call: JobCall) -> Response:
    """Ask the next question, or join or resume the turn that already answers it."""
    kind: TurnKind = "question" if body.alone else "follow-up"
    chosen = body.papers, body.without, body.from_year, body.to_year
    papers = await akeys_within(call.state.session, *chosen, **body.labels())
    return await _turn(thread_id, body.question, kind, body, call, papers)


@router.post("/{thread_id}/improve", responses=job_answers(404), response_class=Response)
async def improve(thread_id: str, body: ImproveBody, call: JobCall) -> Response:
    """Write the last answer again in the light of feedback."""
    return await _turn(thread_id, body.feedback, "improve", body, call)


@router.post("/{thread_id}/cancel", responses=problems(404))
async def cancel_turn(thread_id: str, state: StateOf) -> response_models.Stopped:
    """Stop the active turn, on whichever server; asking the same question again resumes it."""
    entry = await state.runs.find_conversation(thread_id)
    return {"id": entry.thread_id, "stopped": await state.jobs.stop(entry.thread_id)}


@router.get(
    "/{thread_id}/export",
    response_class=Response,
    responses={
        200: {
            "description": "The conversation as a file.",
            "content": {"text/markdown": {"schema": {"type": "string"}}, "application/json": {"schema": {}}},
        },
        **problems(404),
    },
)
async def export_conversation(
    thread_id: str, state: StateOf, format: Annotated[Literal["md", "json"], Query()] = "md"
) -> Response:
    """The conversation with your edits as markdown or JSON, as `conversations export` writes it."""
    entry = await asyncio.to_thread(lambda: state.session.home.conversations().get(thread_id))
    turns = await asyncio.to_thread(stored_runs.turns_as_shown, state.session, entry.thread_id)
    stored_runs.require_turns(entry.thread_id, turns)
    text = (stored_runs.transcript if format == "md" else stored_runs.transcript_json)(entry.thread_id, turns)
    headers = response_models.attached(f"{entry.thread_id}.{format}")
    return Response(text.encode("utf-8", "replace"), media_type=response_models.MEDIA_TYPES[format], headers=headers)


@router.get("/{thread_id}/events", tags=["events"], responses=event_answers(), response_class=Response)
async def turn_events(thread_id: str, request: Request, state: StateOf) -> Response:
    """The events of the current turn since `Last-Event-ID`, until it ends; else the end of the last turn."""
    job = await state.jobs.find(thread_id) or await load_ended_turn(thread_id, state.session.home)
    return event_stream(await state.jobs.find(job.id) or job, request, state.streams)


@router.delete("/{thread_id}", status_code=204, responses=problems(404, 409))
async def remove_conversation(thread_id: str, state: StateOf) -> None:
    """Delete the conversation with exactly this id, if it is not active; cached model answers stay."""
    await state.runs.delete_conversation(thread_id)


async def _turn(
    thread_id: str,
    asked: str,
    kind: TurnKind,
    body: QuestionBody | ImproveBody,
    call: JobCall,
    papers: Sequence[str] = (),
) -> Response:
    def start() -> Awaitable[Job]:
        return call.state.runs.ask(thread_id, asked, kind, body, papers)

    return await call.answer(asdict(body), start, "conversations")


def _with_job(record: ConversationSummary, jobs: Mapping[str, JobEntry]) -> response_models.ListedConversation:
    """Add the active turn, whose question is the title until there is an answer."""
    active = active_record(jobs, record["thread_id"])
    asked = jobs[record["thread_id"]].order.request["asked"] if active else ""
    return {**record, "title": record["title"] or asked, "active": active}
