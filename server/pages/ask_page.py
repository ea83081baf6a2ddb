"""Ask: conversations with the library, and the evidence of each citation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from ...api import stored_conversations
from ...api.conversation import paused_turn
from ..problems import ServerError
from ..server_state import ServerState, StateOf
from .answer_view import AnswerView, DetailKind, answer_view, detail
from .html import page

router = APIRouter(include_in_schema=False)
_KINDS: Final[Mapping[str, DetailKind]] = {
    "citations": "citation",
    "findings": "finding",
    "numbers": "number",
    "evidence": "evidence",
}


@router.get("/")
async def new_conversation(request: Request, state: StateOf) -> Response:
    return await _conversation_page(request, state, "", [], None)


@router.get("/conversations")
async def conversation_list(request: Request, state: StateOf, current: str = "") -> Response:
    context = {"conversations": await _entries(state), "thread_id": current}
    return page(request, "conversation_list.html", context)


@router.get("/conversations/{thread_id}")
async def conversation(thread_id: str, request: Request, state: StateOf) -> Response:
    home = state.session.home
    found = (await asyncio.to_thread(stored_conversations.find_conversation, home, thread_id)).thread_id
    turns = await asyncio.to_thread(stored_conversations.read_turns, home, found)
    return await _conversation_page(request, state, found, turns, await _open_turn(state, found))


@router.get("/conversations/{thread_id}/state")
async def conversation_state(thread_id: str, state: StateOf) -> dict[str, Any]:
    """The number of finished turns and the open one, for a page to catch up."""
    entry = await asyncio.to_thread(stored_conversations.find_conversation, state.session.home, thread_id)
    current = await _open_turn(state, entry.thread_id)
    return {"turns": entry.turns, "open": current}


@router.get("/conversations/{thread_id}/turns/{number}")
async def turn(thread_id: str, number: int, request: Request, state: StateOf) -> Response:
    _, kept = await state.runs.find_turn(thread_id, number)
    return page(request, "turn.html", {"item": _turn_view(kept, thread_id), "thread_id": thread_id})


@router.get("/conversations/{thread_id}/turns/{number}/{kinds}/{which}")
async def turn_detail(
    thread_id: str, number: int, kinds: str, which: str, request: Request, state: StateOf
) -> Response:
    """What an answer's link opens: a passage with its page, a finding, or a number's source."""
    _, kept = await state.runs.find_turn(thread_id, number)
    return await detail_page(request, state, _turn_view(kept, thread_id)["answer"], kinds, which)


async def detail_page(request: Request, state: ServerState, view: AnswerView, kinds: str, which: str) -> Response:
    """A link's details, as a fragment for the side panel or as a full page."""
    if kinds not in _KINDS:
        raise ServerError(404, "There is no such page.")
    shown = await asyncio.to_thread(detail, view, _KINDS[kinds], which, state.session.library)
    alone = "x-part" not in request.headers
    return page(request, "detail_page.html" if alone else "detail.html", shown)


async def _entries(state: ServerState) -> list[stored_conversations.ConversationEntry]:
    listed = []
    jobs = await state.jobs.known()
    for entry in await asyncio.to_thread(stored_conversations.list_conversations, state.session.home):
        job = jobs.get(entry.thread_id)
        if entry.turns:
            listed.append(entry)
        elif job is not None:
            listed.append(replace(entry, title=job.order.request.get("asked", "")))
    return listed


async def _conversation_page(
    request: Request,
    state: ServerState,
    thread_id: str,
    turns: Sequence[stored_conversations.KeptTurn],
    current: dict[str, Any] | None,
) -> Response:
    context = {
        "conversations": await _entries(state),
        "thread_id": thread_id,
        "turns": [_turn_view(turn, thread_id) for turn in turns],
        "open": current,
        "papers": len(await asyncio.to_thread(state.session.library.records)),
        "settings": state.session.settings,
        "judged": not state.session.extractive,
    }
    return page(request, "ask.html", context)


def _turn_view(kept: stored_conversations.KeptTurn, thread_id: str) -> dict[str, Any]:
    return {"turn": kept, "answer": answer_view(kept.record, f"/conversations/{thread_id}/turns/{kept.number}")}


async def _open_turn(state: ServerState, thread_id: str) -> dict[str, Any] | None:
    if (job := await state.jobs.active_entry(thread_id)) is not None:
        return {"asked": job.order.request["asked"], "kind": job.order.request["kind"], "active": True}
    paused = await paused_turn(thread_id, state.session.home)
    return {"asked": paused.asked, "kind": paused.kind, "active": False} if paused else None
