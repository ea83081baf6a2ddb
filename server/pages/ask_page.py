"""Ask: conversations with the library, and the evidence of each citation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from ...api import run_texts, stored_runs
from ...api.conversation import paused_turn
from ...api.library_papers import alist_papers
from ...api.library_search import Labels
from ...api.results import PaperSummary
from ...settings.config import CitationStyle
from ..problems import ServerError
from ..request_models import Words
from ..routes.run_routes import file_records
from ..server_state import ServerState, StateOf
from .answer_view import AnswerView, DetailKind, detail, show_text
from .html import page, part
from .library_page import label_choices

router = APIRouter(include_in_schema=False)
_CHOICES: Final = 300  # papers offered while one is typed
_SUGGESTED: Final = 3
_KINDS: Final[Mapping[str, DetailKind]] = {
    "citations": "citation",
    "findings": "finding",
    "numbers": "number",
    "evidence": "evidence",
}


@router.get("/")
async def new_conversation(
    request: Request,
    state: StateOf,
    question: Annotated[str, Query(max_length=4000)] = "",
    paper: Annotated[list[str], Query(max_length=200)] = [],  # noqa: B006
) -> Response:
    """An empty conversation, with a question and the papers to ask filled in if the address has them."""
    return await _conversation_page(request, state, None, [], None, question, paper)


@router.get("/conversations")
async def conversation_list(
    request: Request, state: StateOf, current: str = "", q: Words = "", archived: bool = False
) -> Response:
    """The conversations with these words, or those archived, as the list beside the page."""
    context = {"conversations": await _entries(state, q, archived=archived), "thread_id": current}
    return part(request, "conversation_list.html", context)


@router.get("/conversations/{thread_id}")
async def conversation(thread_id: str, request: Request, state: StateOf) -> Response:
    """A conversation; for a script, its head alone."""
    home = state.session.home
    entry = await asyncio.to_thread(lambda: home.conversations().get(thread_id))
    if "x-part" in request.headers:
        _, first = await state.runs.find_turn(thread_id, 1)
        return page(request, "conversation_head.html", {"entry": entry, "asked": first.asked})
    turns = await asyncio.to_thread(lambda: home.conversations().turns(entry.thread_id))
    return await _conversation_page(request, state, entry, turns, await _open_turn(state, entry.thread_id))


@router.get("/conversations/{thread_id}/state")
async def conversation_state(thread_id: str, state: StateOf) -> dict[str, Any]:
    """The number of finished turns and the open one, for a page to catch up."""
    entry = await asyncio.to_thread(lambda: state.session.home.conversations().get(thread_id))
    current = await _open_turn(state, entry.thread_id)
    return {"turns": entry.turns, "open": current}


@router.get("/conversations/{thread_id}/turns/{number}")
async def turn(thread_id: str, number: int, request: Request, state: StateOf) -> Response:
    """An answer for a script; for a link to it, the conversation at this answer."""
    thread_id, kept = await state.runs.find_turn(thread_id, number)
    if "x-part" not in request.headers:
        return RedirectResponse(f"/conversations/{thread_id}#turn-{number}", 303)
    return page(request, "turn.html", {"item": await _turn_view(state, kept, thread_id)})


@router.get("/conversations/{thread_id}/turns/{number}/{kinds}/{which}")
async def turn_detail(
    thread_id: str, number: int, kinds: str, which: str, request: Request, state: StateOf
) -> Response:
    """What an answer's link opens: a passage with its page, a finding, or a number's source."""
    thread_id, kept = await state.runs.find_turn(thread_id, number)
    return await detail_page(request, state, await _show_answer(state, kept, thread_id), kinds, which)


async def detail_page(request: Request, state: ServerState, view: AnswerView, kinds: str, which: str) -> Response:
    """A link's details, as a fragment for the side panel, as a card beside the link, or as a full page."""
    if kinds not in _KINDS:
        raise ServerError(404, "There is no such page.")
    shown = await asyncio.to_thread(detail, view, _KINDS[kinds], which, state.session.library)
    template = {"": "detail_page.html", "card": "citation_card.html"}.get(
        request.headers.get("x-part", ""), "detail.html"
    )
    return page(request, template, shown)


async def _entries(
    state: ServerState, words: str = "", *, archived: bool = False
) -> list[stored_runs.ConversationEntry]:
    listed, home = [], state.session.home
    jobs = await state.jobs.known()
    for entry in await asyncio.to_thread(stored_runs.list_conversations, home, words, archived=archived):
        job = jobs.get(entry.thread_id)
        if entry.turns:
            listed.append(entry)
        elif job is not None:
            listed.append(replace(entry, title=entry.title or job.order.request.get("asked", "")))
    return listed


async def _conversation_page(
    request: Request,
    state: ServerState,
    entry: stored_runs.ConversationEntry | None,
    turns: Sequence[stored_runs.KeptTurn],
    current: dict[str, Any] | None,
    question: str = "",
    chosen: Sequence[str] = (),
) -> Response:
    papers = await alist_papers(state.session)
    thread_id = entry.thread_id if entry else ""
    context = {
        "entry": entry,
        "asked": turns[0].asked if turns else "",
        "styles": get_args(CitationStyle),
        "style": state.session.answer_style,
        "question": question,
        "chosen": list(chosen),
        "suggested": [] if turns or current else first_questions(papers),
        "choices": papers[:_CHOICES],
        "labels": {name: found for name, found in label_choices(papers).items() if name in Labels.__annotations__},
        "conversations": await _entries(state),
        "thread_id": thread_id,
        "turns": [await _turn_view(state, turn, thread_id) for turn in turns],
        "open": current,
        "papers": len(papers),
        "settings": state.session.settings,
        "judged": not state.session.extractive,
    }
    return page(request, "ask.html", context)


def first_questions(papers: Sequence[PaperSummary]) -> list[str]:
    """Questions to begin with: one for each of the latest papers, and one over all of them."""
    latest = sorted((paper for paper in papers if paper["title"]), key=lambda paper: -(paper["year"] or 0))
    asked = [f"What does “{paper['title']}” find, and from what data?" for paper in latest[:_SUGGESTED]]
    return [*asked, "What do the papers disagree about?"] if len(papers) > 1 else asked


def next_questions(view: AnswerView) -> list[str]:
    """Follow-up questions: what speaks against an answer, and what a paper says that was found but not cited."""
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
