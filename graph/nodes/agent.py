"""agent, guard and tools: further searches for what is still missing, within a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from ...documents import Chunk
from ...models.concurrency import gather_all
from ...plurals import counted
from ...roles.chat.prompt_format import beginning, coverage_lines, fenced
from ...roles.chat.prompt_passages import show_passages
from ...roles.needs import Need, Purpose
from ...tools import Scope, Searched, ToolRequestError, parse_request
from ...tools.evidence_search import search_each
from ...tools.library_tools import Passages, read_introduction, read_papers, read_summaries, read_window
from ...tools.need_coverage import coverage
from ...tools.tool_schemas import (
    COUNTED,
    ContextWindow,
    PaperIntroduction,
    Reading,
    SearchEvidence,
    SearchPapers,
    ToolRequest,
)
from ..events import evidence_found, progress
from ..evidence_ids import number_evidence
from ..prompt_fitting import search_limits
from ..repeated_queries import answered_before
from ..role_inputs import brief_of, is_answerable, limits_of
from ..session import Session
from ..state import QueryRecord, ResearchState, RunState, SectionState, Update
from ..state_conversion import needs_of, own_coverage, own_queries, passages_of, purpose_of

BUDGET_USED = "Not carried out: the search budget is used up. Stop searching."

_MAX_FRUITLESS = 3  # fruitless searches for a question, after which the library is taken to have no answer


async def agent(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """One turn of the planner; its opening messages are kept in the state, so that they never change."""
    roles = await session.roles(runtime)
    brief, warnings = await brief_of(state, session)
    known: list[BaseMessage] = list(state.get("messages", []))
    opening = [] if known else roles.planner_of(brief).open(brief)
    answer = await roles.planner_of(brief).plan(await _with_texts([*opening, *known], session), brief)
    asked = len(answer.tool_calls) + len(answer.invalid_tool_calls)
    said = f"searching further: {counted(asked, 'request')}" if asked else "no further search needed"
    runtime.stream_writer(progress("planning", said))
    return {"messages": [*opening, answer], "agent_turns": 1, "warnings": warnings}


async def guard(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Allow tool calls within the budget; every other call is answered here, so that none stays open."""
    message = state["messages"][-1]
    refused: list[ToolMessage] = []
    allowed: list[dict[str, Any]] = []
    records = _own_first(state)
    used = state.get("searches_used", 0)
    mistakes = 0
    if not isinstance(message, AIMessage):
        return {"pending_calls": [], "searching": False}
    within = await asyncio.to_thread(limits_of, state, session.library)
    for broken in message.invalid_tool_calls:
        mistakes += 1
        refused.append(_answer(broken.get("id"), f"The arguments are not JSON: {broken.get('error') or 'unreadable'}."))
    for call in message.tool_calls:
        try:
            request = parse_request(call["name"], call["args"])
        except ToolRequestError as error:
            mistakes += 1
            refused.append(_answer(call["id"], str(error)))
            continue
        earlier = _repeats(request, records, within)
        counted = call["name"] in COUNTED and earlier is None
        if counted and used >= session.settings.max_search_iterations:
            refused.append(_answer(call["id"], BUDGET_USED))
            continue
        used += counted
        if isinstance(request, SearchEvidence) and earlier is None:
            records.append(_query_record(request, within))
        allowed.append({"name": call["name"], "args": call["args"], "id": call["id"], "counted": counted})
    more: list[BaseMessage] = list(refused)
    if not message.tool_calls and not mistakes and (left := _reminder(state, session, used)):
        more.append(HumanMessage(left))
    again = bool(mistakes or len(more) > len(refused)) and await asyncio.to_thread(_may_continue, state, session, used)
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


def _may_continue(state: RunState, session: Session, used: int) -> bool:
    """True while searches are left; turns are limited too, since reading costs no search. Blocks."""
    budget = session.settings.max_search_iterations
    custom = sum(record["origin"] == "custom" for record in own_queries(state))
    if "question" in state and custom >= _MAX_FRUITLESS and not is_answerable(state, session):
        return False
    return used < budget and state.get("agent_turns", 0) < 2 * budget + 2


async def tools(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Run the allowed calls concurrently; ids and answers follow the order of the calls."""
    roles = await session.roles(runtime)
    purpose, known = purpose_of(state), state.get("read_chunks", [])
    calls = state["pending_calls"]
    requests = [parse_request(call["name"], call["args"]) for call in calls]
    within = await asyncio.to_thread(limits_of, state, session.library)
    records, repeated = _split_repeats(requests, _own_first(state), within)
    question = cast(ResearchState, state).get("question", "")
    reader = roles.answering.reader if question else roles.reader
    limits = await search_limits(session, runtime, section=not question)

    asked = {
        number: (_need_of(request, purpose), request.scope().narrowed(within))
        for number, request in enumerate(requests)
        if isinstance(request, SearchEvidence) and number in records
    }
    searched = await search_each(session.library, reader, purpose, list(asked.values()), limits, known=known)
    fetched = [number for number, request in enumerate(requests) if not isinstance(request, SearchEvidence)]
    passages = await gather_all(_read(cast(Reading, requests[number]), session) for number in fetched)
    outcomes = dict(zip(fetched, passages, strict=True))
    given = cast(ResearchState, state).get("evidence_ids", {})
    new, ids = number_evidence(state["evidence"], [search.found for search in searched], given)
    there = {record["id"] for record in state["evidence"]}
    for event in evidence_found(record for record in new if record["id"] not in there):
        runtime.stream_writer(event)
    for record, found, search in zip(records.values(), ids, searched, strict=True):
        record["evidence_ids"] = found
        record.update(cast(QueryRecord, passages_of(search)))
    everything = {record["id"]: record for record in [*state["evidence"], *new]}
    answers: list[ToolMessage] = []
    for number, (call, request) in enumerate(zip(calls, requests, strict=True)):
        if isinstance(request, SearchEvidence):
            record = records[number] if number in records else repeated[number]
            found = record["evidence_ids"]
            if number in repeated:
                answers.append(_answer(call["id"], f"This repeats the query {record['query']!r}; see its evidence."))
                continue
            answers.append(_answer(call["id"], _listed([everything[item] for item in found])))
            said = f"{counted(len(found), 'finding')} for: {request.query}"
            runtime.stream_writer(progress("searched", said, passages=len(found)))
        else:
            answers.append(_answer(call["id"], outcomes[number].lead, outcomes[number].chunk_ids))
    made = sum(bool(call["counted"]) for call in calls)
    queries = [_of_section(record, state) for record in records.values()]
    if answers:
        answers[-1] = _with_coverage(answers[-1], state, new, queries, session, made)
    # A search that an earlier section of the paper already made counts from here on as one of this section too.
    earlier = [record for record in repeated.values() if _of_earlier_section(record, state)]
    # Its passages were counted with that section.
    taken = {record["query"]: cast(QueryRecord, {**record, **passages_of(Searched((), ()))}) for record in earlier}
    return {
        "messages": answers,
        "evidence": new,
        "queries": [*queries, *(_of_section(record, state) for record in taken.values())],
        "read_chunks": list(dict.fromkeys(name for search in searched for name in search.read)),
        "searches_used": made,
        "pending_calls": [],
        "searching": await asyncio.to_thread(_may_continue, state, session, state.get("searches_used", 0) + made),
    }


async def _read(request: Reading, session: Session) -> Passages:
    if isinstance(request, ContextWindow):
        return await asyncio.to_thread(read_window, session.library, request.chunk_id, request.window)
    if isinstance(request, PaperIntroduction):
        return await asyncio.to_thread(read_introduction, session.library, request.key)
    if isinstance(request, SearchPapers):
        asked = (request.query, request.min_year, request.max_year, request.page)
        return await asyncio.to_thread(read_papers, session.library, *asked)
    return await read_summaries(session.library, request.query)


def _split_repeats(
    requests: Sequence[ToolRequest], known: Sequence[QueryRecord], within: Scope
) -> tuple[dict[int, QueryRecord], dict[int, QueryRecord]]:
    """Records of new searches, still without evidence, and the earlier records that repeated searches match.

    Both by index of the request; a search may repeat one of the same turn.
    """
    new: dict[int, QueryRecord] = {}
    repeated: dict[int, QueryRecord] = {}
    for number, request in enumerate(requests):
        if not isinstance(request, SearchEvidence):
            continue
        earlier = _repeats(request, [*known, *new.values()], within)
        if earlier is None:
            new[number] = _query_record(request, within)
        else:
            repeated[number] = earlier
    return new, repeated


def _own_first(state: RunState) -> list[QueryRecord]:
    """All answered searches; those of a paper's earlier sections come after the section's own."""
    return sorted(state.get("queries", []), key=lambda record: _of_earlier_section(record, state))


def _of_earlier_section(record: QueryRecord, state: RunState) -> bool:
    section = cast(SectionState, state).get("section")
    return record.get("section", section) != section


def _of_section(record: QueryRecord, state: RunState) -> QueryRecord:
    """The record as one of the current section; questions have none."""
    section = cast(SectionState, state).get("section")
    return {**record, "section": section} if section else record


def _query_record(request: SearchEvidence, within: Scope) -> QueryRecord:
    scope = request.scope().narrowed(within).as_dict()
    needs = [request.need.strip().upper()] if request.need else []
    return {"query": request.query, "origin": "custom", "needs": needs, "scope": scope, "evidence_ids": []}


def _need_of(request: SearchEvidence, purpose: Purpose) -> Need:
    """The need that a search serves, with the planner's query; without a need the query itself is the need."""
    named = purpose.named([request.need.strip().upper()])
    return replace(named[0], queries=(request.query,)) if named else Need("", request.query, (request.query,))


def _with_coverage(
    answer: ToolMessage,
    state: RunState,
    new: Sequence[dict[str, Any]],
    queries: Sequence[QueryRecord],
    session: Session,
    made: int,
) -> ToolMessage:
    """Append to the last answer of a turn the coverage of each need, and what is left of the budget."""
    ids = {name for record in (*own_queries(state), *queries) for name in record["evidence_ids"]}
    evidence = [record for record in (*state["evidence"], *new) if record["id"] in ids]
    now = coverage(needs_of(state), evidence, [*own_queries(state), *queries])
    left = max(0, session.settings.max_search_iterations - state.get("searches_used", 0) - made)
    lines = "\n".join(coverage_lines(now))
    return answer.model_copy(update={"content": f"{answer.content}\n\n{lines}\nSearches left: {left}."})


def _repeats(request: ToolRequest, records: Sequence[QueryRecord], within: Scope) -> QueryRecord | None:
    if not isinstance(request, SearchEvidence):
        return None
    return answered_before(request.query, request.scope().narrowed(within).as_dict(), records)


def _listed(records: Sequence[dict[str, Any]]) -> str:
    if not records:
        return "Nothing new in the library bears on this query."
    return "\n".join(
        f"[{record['id']}] for {record.get('need') or '-'}, score {record['llm_score']:.1f}, "
        f"chunk {record['chunk_id']}: {beginning(record['summary'])}"
        for record in records
    )


def _answer(call_id: str | None, text: str, chunk_ids: Sequence[str] = ()) -> ToolMessage:
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
