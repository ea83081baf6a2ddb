"""Creates, lists, asks, stops, exports and deletes conversations; and their pages, with what a citation opens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Annotated, Any, Final, Literal, get_args

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from ...api import library_papers, people, results, run_texts, stored_runs
from ...api.conversation import TurnKind, paused_turn
from ...api.library_search import Labels, akeys_within
from ...api.serving import JobEntry
from ...settings.config import CitationStyle
from .. import response_models
from ..job import active_record
from ..job_requests import JobCall, event_stream
from ..request_models import ImproveBody, LabelBody, Limit, Offset, QuestionBody, ReadersBody, Words
from ..response_models import event_answers, job_answers, problems
from ..run_jobs import conversation_deleted, load_ended_turn
from ..server_state import ServerState, SharingOwner, StateOf
from .answer_view import AnswerView, detail_page, file_records, show_text
from .html import page, part
from .paper_routes import label_choices

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
    """The conversations, or the archived ones, the latest first; with `q`, those that contain all its words."""
    entries = await asyncio.to_thread(stored_runs.list_conversations, state.session.home, q, archived=archived)
    jobs = await state.jobs.known()
    records = [stored_runs.conversation_summary(entry) for entry in entries[offset : offset + limit]]
    return {"conversations": [_with_job(record, jobs) for record in records], "total": len(entries)}


@router.get("/{thread_id}", responses=problems(404))
async def get_conversation(thread_id: str, state: StateOf, owner: SharingOwner) -> response_models.ConversationWithJob:
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
    """Name, archive or unarchive a conversation."""
    home, found = state.session.home, await state.runs.find_conversation(thread_id)
    async with state.orders.lock(conversation_deleted(found.thread_id)):
        label = stored_runs.label_conversation
        entry = await asyncio.to_thread(label, home, found.thread_id, **body.model_dump())
    return _with_job(stored_runs.conversation_summary(entry), await state.jobs.known())


@router.get("/{thread_id}/readers", responses=problems(404))
async def get_readers(thread_id: str, state: StateOf) -> response_models.Readers:
    """Who may read a conversation besides you."""
    found = await state.runs.find_conversation(thread_id)
    return {"readers": await asyncio.to_thread(lambda: state.session.home.conversations().readers(found.thread_id))}


@router.put("/{thread_id}/readers", responses=problems(404, 409))
async def share(thread_id: str, body: ReadersBody, state: StateOf) -> response_models.Readers:
    """Let exactly these people read a conversation besides you."""
    home, found = state.session.home, await state.runs.find_conversation(thread_id)
    async with state.orders.lock(conversation_deleted(found.thread_id)):
        return {"readers": await asyncio.to_thread(people.share, home, found.thread_id, body.readers)}


@router.post("/{thread_id}/turns", responses=job_answers(404), response_class=Response)
async def ask(thread_id: str, body: QuestionBody, call: JobCall) -> Response:
    """Ask the next question, or join or resume the turn that already answers it."""
    kind: TurnKind = "question" if body.alone else "follow-up"
    chosen = body.papers, body.without, body.from_year, body.to_year
    papers = await akeys_within(call.state.session, *chosen, **body.labels())
    start = partial(call.state.runs.ask, thread_id, body.question, kind, body, papers)
    return await call.answer(asdict(body), start, "conversations")


@router.post("/{thread_id}/improve", responses=job_answers(404), response_class=Response)
async def improve(thread_id: str, body: ImproveBody, call: JobCall) -> Response:
    """Write the last answer again in the light of feedback."""
    start = partial(call.state.runs.ask, thread_id, body.feedback, "improve", body)
    return await call.answer(asdict(body), start, "conversations")


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
    thread_id: str, state: StateOf, owner: SharingOwner, format: Annotated[Literal["md", "json"], Query()] = "md"
) -> Response:
    """The conversation with your edits as markdown or JSON, as `conversations export` writes it."""
    entry = await asyncio.to_thread(lambda: state.session.home.conversations().get(thread_id))
    turns = await asyncio.to_thread(stored_runs.turns_as_shown, state.session, entry.thread_id)
    stored_runs.require_turns(entry.thread_id, turns)
    write = stored_runs.transcript if format == "md" else stored_runs.transcript_json
    text = write(entry.thread_id, turns)
    headers = response_models.attached(f"{entry.thread_id}.{format}")
    return Response(text.encode("utf-8", "replace"), media_type=response_models.MEDIA_TYPES[format], headers=headers)


@router.get("/{thread_id}/events", tags=["events"], responses=event_answers(), response_class=Response)
async def turn_events(thread_id: str, request: Request, state: StateOf) -> Response:
    """The events of the current turn since `Last-Event-ID`, until it ends; without one, the end of the last turn."""
    job = await state.jobs.find(thread_id) or await load_ended_turn(thread_id, state.session.home)
    return event_stream(await state.jobs.find(job.id) or job, request, state.streams)


@router.delete("/{thread_id}", status_code=204, responses=problems(404, 409))
async def remove_conversation(thread_id: str, state: StateOf) -> None:
    """Delete the conversation with exactly this id, if it is not active; cached model answers stay."""
    await state.runs.delete_conversation(thread_id)


def _with_job(record: results.ConversationSummary, jobs: Mapping[str, JobEntry]) -> response_models.ListedConversation:
    """Add the active turn, whose question is the title until there is an answer."""
    active = active_record(jobs, record["thread_id"])
    asked = jobs[record["thread_id"]].order.request["asked"] if active else ""
    return {**record, "title": record["title"] or asked, "active": active}


pages = APIRouter(include_in_schema=False)
_CHOICES: Final = 300  # papers suggested while a name is typed
_SUGGESTED: Final = 3


@pages.get("/")
async def new_conversation(
    request: Request,
    state: StateOf,
    question: Annotated[str, Query(max_length=4000)] = "",
    paper: Annotated[list[str], Query(max_length=200)] = [],  # noqa: B006
) -> Response:
    """An empty conversation, with a question and the papers to ask filled in if the address has them."""
    return await _conversation_page(request, state, None, question, paper)


@pages.get("/conversations")
async def conversation_list(
    request: Request, state: StateOf, current: str = "", q: Words = "", archived: bool = False
) -> Response:
    """The list beside the page: the conversations with these words, or the archived ones."""
    shared = [] if archived else await asyncio.to_thread(people.shared_conversations, state.session.home, q)
    context = {"conversations": await _entries(state, q, archived=archived), "shared": shared, "thread_id": current}
    return part(request, "conversation_list.html", context)


@pages.get("/conversations/{thread_id}")
async def conversation(thread_id: str, request: Request, state: StateOf, owner: SharingOwner) -> Response:
    """A conversation: scripts get only its head, and people with whom it is shared cannot change it."""
    entry = await asyncio.to_thread(lambda: state.session.home.conversations().get(thread_id))
    if "x-part" in request.headers:
        _, first = await state.runs.find_turn(thread_id, 1)
        about = {"entry": entry, "asked": first.asked, **await _sharing(state, entry.thread_id)}
        return page(request, "conversation_head.html", about)
    if owner:
        turns = await asyncio.to_thread(lambda: state.session.home.conversations().turns(entry.thread_id))
        shown = [await _turn_view(state, turn, entry.thread_id) for turn in turns]
        return page(request, "shared_conversation.html", {"entry": entry, "turns": shown, "owner": owner})
    return await _conversation_page(request, state, entry)


@pages.post("/conversations/{thread_id}/readers")
async def share_by_form(
    thread_id: str,
    state: StateOf,
    readers: Annotated[list[Annotated[str, Form(max_length=40)]], Form()] = [],  # noqa: B006
) -> Response:
    await share(thread_id, ReadersBody(readers=readers), state)
    return RedirectResponse(f"/conversations/{thread_id}", 303)


@pages.get("/conversations/{thread_id}/state")
async def conversation_state(thread_id: str, state: StateOf) -> dict[str, Any]:
    """The number of finished turns and the open turn, so that a page can catch up."""
    entry = await asyncio.to_thread(lambda: state.session.home.conversations().get(thread_id))
    current = await _open_turn(state, entry.thread_id)
    return {"turns": entry.turns, "open": current}


@pages.get("/conversations/{thread_id}/turns/{number}")
async def turn(thread_id: str, number: int, request: Request, state: StateOf, owner: SharingOwner) -> Response:
    """An answer, if a script asks; else the conversation, scrolled to the answer."""
    thread_id, kept = await state.runs.find_turn(thread_id, number)
    if "x-part" not in request.headers:
        return RedirectResponse(f"/conversations/{thread_id}#turn-{number}", 303)
    return page(request, "turn.html", {"item": await _turn_view(state, kept, thread_id), "owner": owner})


@pages.get("/conversations/{thread_id}/turns/{number}/{kinds}/{which}")
async def turn_detail(
    thread_id: str, number: int, kinds: str, which: str, request: Request, state: StateOf, owner: SharingOwner
) -> Response:
    """What an answer's link opens: a passage with its page, a finding, or a number's source."""
    thread_id, kept = await state.runs.find_turn(thread_id, number)
    return await detail_page(request, state, await _show_answer(state, kept, thread_id), kinds, which)


async def _entries(
    state: ServerState, words: str = "", *, archived: bool = False
) -> list[stored_runs.ConversationEntry]:
    """List conversations with an answer, and those whose first question, their title until then, is being answered."""
    home, jobs = state.session.home, await state.jobs.known()
    found = await asyncio.to_thread(stored_runs.list_conversations, home, words, archived=archived)
    titles = {thread_id: job.order.request.get("asked", "") for thread_id, job in jobs.items()}
    listed = (entry for entry in found if entry.turns or entry.thread_id in titles)
    return [replace(entry, title=entry.title or titles.get(entry.thread_id, "")) for entry in listed]


async def _sharing(state: ServerState, thread_id: str) -> dict[str, Any]:
    """With whom a conversation is shared, and with whom it could be: nobody on a server without accounts."""
    if not (person := people.acting.get()):
        return {"readers": [], "others": []}
    known = await asyncio.to_thread(state.accounts.people)
    readers = await asyncio.to_thread(lambda: state.session.home.conversations().readers(thread_id))
    return {"readers": readers, "others": [other.name for other in known if other.name != person]}


async def _conversation_page(
    request: Request,
    state: ServerState,
    entry: stored_runs.ConversationEntry | None,
    question: str = "",
    chosen: Sequence[str] = (),
) -> Response:
    papers, thread_id = await library_papers.alist_papers(state.session), entry.thread_id if entry else ""
    home = state.session.home
    turns = await asyncio.to_thread(lambda: home.conversations().turns(thread_id)) if entry else []
    current = await _open_turn(state, thread_id) if entry else None
    context = {
        "entry": entry,
        "asked": turns[0].asked if turns else "",
        **await _sharing(state, thread_id),
        "styles": get_args(CitationStyle),
        "style": state.session.answer_style,
        "question": question,
        "chosen": list(chosen),
        "suggested": [] if turns or current else first_questions(papers),
        "choices": papers[:_CHOICES],
        "labels": {name: found for name, found in label_choices(papers).items() if name in Labels.__annotations__},
        "conversations": await _entries(state),
        "shared": await asyncio.to_thread(people.shared_conversations, home),
        "thread_id": thread_id,
        "turns": [await _turn_view(state, turn, thread_id) for turn in turns],
        "open": current,
        "papers": len(papers),
        "settings": state.session.settings,
        "judged": not state.session.extractive,
    }
    return page(request, "ask.html", context)


def first_questions(papers: Sequence[results.PaperSummary]) -> list[str]:
    """Suggest opening questions: one for each of the latest papers, and one about all of them."""
    latest = sorted((paper for paper in papers if paper["title"]), key=lambda paper: -(paper["year"] or 0))
    asked = [f"What does “{paper['title']}” find, and from what data?" for paper in latest[:_SUGGESTED]]
    return [*asked, "What do the papers disagree about?"] if len(papers) > 1 else asked


def next_questions(view: AnswerView) -> list[str]:
    """Suggest follow-ups: what speaks against an answer, and what a paper says that was found but not cited."""
    cited = {citation["key"] for citation in view.record["citations"]}
    found = [hit for group in view.report.unused for hit in group if hit.record["key"] not in cited]
    others = [f"What does “{hit.paper['title']}” say about this?" for hit in found if hit.paper["title"]][:1]
    return ["What speaks against this?", "How was this measured, and on how many?", *others] if cited else others


async def _turn_view(state: ServerState, kept: stored_runs.KeptTurn, thread_id: str) -> dict[str, Any]:
    view = await _show_answer(state, kept, thread_id)
    record, home = run_texts.stored(view.record), state.session.home
    files = await asyncio.to_thread(run_texts.ResultFiles.of, record, home, "answer")
    records = file_records([files], f"/api/v1{view.base}/files")
    return {"turn": kept, "answer": view, "next": next_questions(view), "files": records}


async def _show_answer(state: ServerState, kept: stored_runs.KeptTurn, thread_id: str) -> AnswerView:
    base = f"/conversations/{thread_id}/turns/{kept.number}"
    run = run_texts.answer_as_run(thread_id, kept)
    return await show_text(run, state.session, base, f"answer-{kept.number}-")


async def _open_turn(state: ServerState, thread_id: str) -> dict[str, Any] | None:
    if (job := await state.jobs.active_entry(thread_id)) is not None:
        return {"asked": job.order.request["asked"], "kind": job.order.request["kind"], "active": True, "papers": []}
    paused = await paused_turn(thread_id, state.session.home)
    if paused is None:
        return None
    return {"asked": paused.asked, "kind": paused.kind, "active": False, "papers": list(paused.papers)}
