"""agent and guard: the planner asks for further searches, and the budget allows or refuses them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from ...documents import Chunk
from ...plurals import counted
from ...roles.chat.prompt_format import fenced, show_passages
from ...tools.tool_schemas import COUNTED, SearchEvidence, ToolRequestError, parse_request
from ..events import progress
from ..role_inputs import brief_of, is_answerable, limits_of
from ..search_requests import earlier_search, own_first, query_record
from ..session import Session
from ..state import RunState, Update
from ..state_conversion import own_coverage, own_queries

BUDGET_USED = "Not carried out: the search budget is used up. Stop searching."

_MAX_FRUITLESS = 3  # fruitless searches for a question, after which the library is taken to have no answer


async def agent(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """One turn of the planner; its opening messages are kept in the state, so that they never change."""
    roles = await session.roles(runtime)
    brief, warnings = await brief_of(state, session)
    known: list[BaseMessage] = list(state.get("messages", []))
    opening = [] if known else roles.planner_for(brief).open(brief)
    answer = await roles.planner_for(brief).plan(await _with_texts([*opening, *known], session), brief)
    asked = len(answer.tool_calls) + len(answer.invalid_tool_calls)
    said = f"searching further: {counted(asked, 'request')}" if asked else "no further search needed"
    runtime.stream_writer(progress("planning", said))
    return {"messages": [*opening, answer], "agent_turns": 1, "warnings": warnings}


async def guard(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Allow tool calls within the budget; every other call is answered here, so that none stays open."""
    message = state["messages"][-1]
    refused: list[ToolMessage] = []
    allowed: list[dict[str, Any]] = []
    records = own_first(state)
    used = state.get("searches_used", 0)
    mistakes = 0
    if not isinstance(message, AIMessage):
        return {"pending_calls": [], "searching": False}
    within = await asyncio.to_thread(limits_of, state, session.library)
    for broken in message.invalid_tool_calls:
        mistakes += 1
        refused.append(
            tool_answer(broken.get("id"), f"The arguments are not JSON: {broken.get('error') or 'unreadable'}.")
        )
    for call in message.tool_calls:
        try:
            request = parse_request(call["name"], call["args"])
        except ToolRequestError as error:
            mistakes += 1
            refused.append(tool_answer(call["id"], str(error)))
            continue
        earlier = earlier_search(request, records, within)
        counted = call["name"] in COUNTED and earlier is None
        if counted and used >= session.settings.max_search_iterations:
            refused.append(tool_answer(call["id"], BUDGET_USED))
            continue
        used += counted
        if isinstance(request, SearchEvidence) and earlier is None:
            records.append(query_record(request, within))
        allowed.append({"name": call["name"], "args": call["args"], "id": call["id"], "counted": counted})
    more: list[BaseMessage] = list(refused)
    if not message.tool_calls and not mistakes and (left := _reminder(state, session, used)):
        more.append(HumanMessage(left))
    again = bool(mistakes or len(more) > len(refused)) and await asyncio.to_thread(may_continue, state, session, used)
    return {"messages": more if again or refused else [], "pending_calls": allowed, "searching": again}


def _reminder(state: RunState, session: Session, used: int) -> str:
    """The reminder, given once, for a planner that stops before each need is met or was searched for twice."""
    reminded = sum(isinstance(message, HumanMessage) for message in state["messages"]) > 1
    left = [item for item in own_coverage(state) if item.status == "open"]
    if reminded or not left or "agent" in session.extractive or used >= session.settings.max_search_iterations:
        return ""
    listed = "\n".join(f"{item.need.id}: {item.need.text}" for item in left)
    return session.prompts["planner_reminder"].render(needs=fenced(listed, "needs"))


def after_guard(state: RunState) -> Literal["tools", "agent", "generate"]:
    """To the tools when a call was allowed, back to a planner that made only mistakes, otherwise to the writer."""
    if state.get("pending_calls"):
        return "tools"
    return "agent" if state.get("searching") else "generate"


def may_continue(state: RunState, session: Session, used: int) -> bool:
    """True while searches are left; turns are limited too, since reading costs no search. Blocks."""
    budget = session.settings.max_search_iterations
    custom = sum(record["origin"] == "custom" for record in own_queries(state))
    if "question" in state and custom >= _MAX_FRUITLESS and not is_answerable(state, session):
        return False
    return used < budget and state.get("agent_turns", 0) < 2 * budget + 2


def tool_answer(call_id: str | None, text: str, chunk_ids: Sequence[str] = ()) -> ToolMessage:
    """The answer to a tool call; the texts of its chunks are added when a model reads it."""
    return ToolMessage(text, tool_call_id=call_id or "", artifact={"chunks": list(chunk_ids)} if chunk_ids else None)


async def _with_texts(messages: Sequence[BaseMessage], session: Session) -> list[BaseMessage]:
    """Messages as the model reads them: passage ids are replaced by their texts, which the state never holds."""
    wanted = [
        item
        for message in messages
        if isinstance(message, ToolMessage) and message.artifact
        for item in message.artifact["chunks"]
    ]
    if not wanted:
        return list(messages)
    chunks = await asyncio.to_thread(session.library.chunks, list(dict.fromkeys(wanted)))
    by_id: dict[str, Chunk] = {chunk.id: chunk for chunk in chunks}
    shown: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.artifact:
            parts = [by_id[item] for item in message.artifact["chunks"] if item in by_id]
            figures = await asyncio.to_thread(session.library.described.of, parts)
            content = show_passages(str(message.content), parts, figures)
            shown.append(message.model_copy(update={"content": content}))
        else:
            shown.append(message)
    return shown
