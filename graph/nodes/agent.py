"""agent, guard and tools: the planner asks for further searches, which the budget allows or refuses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.runtime import Runtime

from ...documents import Chunk
from ...drafts.written_draft import QueryRecord, new_query
from ...models.concurrency import gather_all
from ...plurals import counted
from ...roles.chat.prompt_format import coverage_line, fence, first_words, show_passages
from ...roles.protocols import Need
from ...tools.evidence_search import search_each
from ...tools.found_evidence import SearchResult, coverage
from ...tools.scope import Scope
from ...tools.tool_schemas import COUNTED, SearchEvidence, ToolRequestError, parse_request
from ..prompt_fitting import search_limits
from ..role_inputs import brief_of, chunks_of, is_answerable, limits_of
from ..run_events import progress
from ..session import Session
from ..state import (
    PlannedSearch,
    ResearchState,
    RunState,
    SectionState,
    Update,
    before_writing,
    needs_of,
    own_coverage,
    own_queries,
    passages_of,
    purpose_of,
    record_searches,
)

BUDGET_USED = "Not carried out: the search budget is used up. Stop searching."

_MAX_FRUITLESS = 3  # fruitless searches, after which the library is assumed to have no answer to a question


async def agent(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Take one turn of the planner; its opening messages are kept in the state, so that they never change."""
    planner = (await session.roles(runtime)).planner
    assert planner is not None  # this node is reached only with a chat model
    brief, warnings = await brief_of(state, session)
    known: list[BaseMessage] = list(state.get("messages", []))
    opening = [] if known else planner.open(brief)
    answer = await planner.plan(await _insert_texts([*opening, *known], session))
    asked = len(answer.tool_calls)  # the planner has already repaired malformed calls
    said = f"searching further: {counted(asked, 'request')}" if asked else "no further search needed"
    runtime.stream_writer(progress("planning", said))
    return {"messages": [*opening, answer], "agent_turns": 1, "warnings": warnings}


async def guard(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Allow tool calls within the budget; every other call is answered here, so that none stays open."""
    message = state["messages"][-1]
    refused: list[ToolMessage] = []
    allowed: list[dict[str, Any]] = []
    # The searches of a paper's earlier sections come after this section's own.
    records = sorted(state.get("queries", []), key=lambda record: of_earlier_section(record, state))
    used = state.get("searches_used", 0)
    mistakes = 0
    if not isinstance(message, AIMessage):
        return {"pending_calls": [], "searching": False}
    within = await asyncio.to_thread(limits_of, state, session.library)
    for call in message.tool_calls:
        try:
            request = parse_request(call["name"], call["args"])
        except ToolRequestError as error:
            mistakes += 1
            refused.append(tool_answer(call["id"], str(error)))
            continue
        earlier: QueryRecord | None = None
        if isinstance(request, SearchEvidence):
            scope = request.scope().narrow(within).as_dict()
            earlier = find_similar_record(request.query, scope, records)
        counted = call["name"] in COUNTED and earlier is None
        if counted and used >= session.settings.max_search_iterations:
            refused.append(tool_answer(call["id"], BUDGET_USED))
            continue
        used += counted
        if isinstance(request, SearchEvidence) and earlier is None:
            records.append(query_record(request, within))
        named = {"name": call["name"], "args": call["args"], "id": call["id"]}
        allowed.append({**named, "counted": counted, "repeats": earlier})
    more: list[BaseMessage] = list(refused)
    if not message.tool_calls and not mistakes and (left := _reminder(state, session, used)):
        more.append(HumanMessage(left))
    again = bool(mistakes or len(more) > len(refused)) and await asyncio.to_thread(may_continue, state, session, used)
    return {"messages": more if again or refused else [], "pending_calls": allowed, "searching": again}


def _reminder(state: RunState, session: Session, used: int) -> str:
    """Return the one-time reminder for a planner that stops while needs are still open."""
    reminded = sum(isinstance(message, HumanMessage) for message in state["messages"]) > 1
    left = [item for item in own_coverage(state) if item.status == "open"]
    if reminded or not left or used >= session.settings.max_search_iterations:
        return ""
    listed = "\n".join(f"{item.need.id}: {item.need.text}" for item in left)
    return session.prompts["planner_reminder"].render(needs=fence(listed, "needs"))


def after_guard(state: RunState) -> Literal["tools", "agent", "ask_evidence", "generate"]:
    """Go to the tools if a call was allowed, back to the planner if it should go on, otherwise to the writer."""
    if state.get("pending_calls"):
        return "tools"
    return "agent" if state.get("searching") else before_writing(state)


def may_continue(state: RunState, session: Session, used: int) -> bool:
    """Whether searches are left; turns are limited too, since reading costs no search. Blocks."""
    budget = session.settings.max_search_iterations
    custom = sum(record["origin"] == "custom" for record in own_queries(state))
    if "question" in state and custom >= _MAX_FRUITLESS and not is_answerable(state, session):
        return False
    return used < budget and state.get("agent_turns", 0) < 2 * budget + 2


def tool_answer(call_id: str | None, text: str, chunk_ids: Sequence[str] = ()) -> ToolMessage:
    """Make the answer to a tool call; the texts of its chunks are added when a model reads it."""
    return ToolMessage(text, tool_call_id=call_id or "", artifact={"chunks": list(chunk_ids)} if chunk_ids else None)


async def _insert_texts(messages: Sequence[BaseMessage], session: Session) -> list[BaseMessage]:
    """Replace passage ids by their texts, which the state never holds, for the model."""
    wanted = list(dict.fromkeys(chunks_of(messages)))
    if not wanted:
        return list(messages)
    chunks = await asyncio.to_thread(session.library.chunks, wanted)
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


async def tools(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Run the allowed calls concurrently; ids and answers follow the order of the calls."""
    calls = state["pending_calls"]
    requests = [parse_request(call["name"], call["args"]) for call in calls]
    within = await asyncio.to_thread(limits_of, state, session.library)
    repeated: dict[int, QueryRecord] = {number: call["repeats"] for number, call in enumerate(calls) if call["repeats"]}
    asked = {number: item for number, item in enumerate(requests) if isinstance(item, SearchEvidence)}
    records = {number: query_record(item, within) for number, item in asked.items() if number not in repeated}
    wanted = [(asked[number], asked[number].scope().narrow(within)) for number in records]
    searched = await search_requests(wanted, state, runtime, session, known=state.get("read_chunks", []))
    reading = {number: item for number, item in enumerate(requests) if not isinstance(item, SearchEvidence)}
    texts = await gather_all(item.answer(session.library) for item in reading.values())
    passages = dict(zip(reading, texts, strict=True))
    searches = list(map(PlannedSearch, records.values(), searched))
    given = cast(ResearchState, state).get("evidence_ids", {})
    update = record_searches(state, state["evidence"], searches, runtime.stream_writer, given)
    made = dict(zip(records, update["queries"], strict=True))
    evidence = {record["id"]: record for record in (*state["evidence"], *update["evidence"])}
    answers: list[ToolMessage] = []
    for number, call in enumerate(calls):
        if number in passages:
            answers.append(tool_answer(call["id"], passages[number].lead, passages[number].chunk_ids))
        elif number in repeated:
            query = repeated[number]["query"]
            answers.append(tool_answer(call["id"], f"This repeats the query {query!r}; see its evidence."))
        else:
            found = [evidence[name] for name in made[number]["evidence_ids"]]
            listed = "\n".join(
                f"[{item['id']}] for {item.get('need') or '-'}, score {item['llm_score']:.1f}, "
                f"chunk {item['chunk_id']}: {first_words(item['summary'])}"
                for item in found
            )
            answers.append(tool_answer(call["id"], listed or "Nothing new in the library bears on this query."))
            said = f"{counted(len(found), 'finding')} for: {made[number]['query']}"
            runtime.stream_writer(progress("searched", said, passages=len(found)))
    # Searches repeated from a paper's earlier sections also count for this section, but their passages do not.
    own_now = {**passages_of(SearchResult((), ())), "section": cast(SectionState, state).get("section")}
    earlier = [record for record in repeated.values() if of_earlier_section(record, state)]
    taken_over = {record["query"]: {**record, **own_now} for record in earlier}
    used = sum(bool(call["counted"]) for call in calls)
    in_all = state.get("searches_used", 0) + used
    if answers:  # the last one also reports the coverage of each need and the remaining budget
        queries = [*own_queries(state), *update["queries"]]
        ids = {name for record in queries for name in record["evidence_ids"]}
        own = [record for record in (*state["evidence"], *update["evidence"]) if record["id"] in ids]
        lines = "\n".join(map(coverage_line, coverage(needs_of(state), own, queries)))
        left = f"Searches left: {max(0, session.settings.max_search_iterations - in_all)}."
        answers[-1] = answers[-1].model_copy(update={"content": f"{answers[-1].content}\n\n{lines}\n{left}"})
    return {
        **update,
        "messages": answers,
        "queries": [*update["queries"], *taken_over.values()],
        "searches_used": used,
        "pending_calls": [],
        "searching": await asyncio.to_thread(may_continue, state, session, in_all),
    }


async def search_requests(
    requests: Sequence[tuple[SearchEvidence, Scope]],
    state: RunState,
    runtime: Runtime[Any],
    session: Session,
    *,
    known: Sequence[str],
) -> Sequence[SearchResult]:
    """Search for each request in its scope, all in one wave, without `known` chunks."""
    roles = await session.roles(runtime)
    purpose = await asyncio.to_thread(purpose_of, state)
    question = cast(ResearchState, state).get("question", "")
    reader = roles.answer_reader if question else roles.reader
    limits = await search_limits(session, runtime, section=not question)
    wanted = []
    for request, scope in requests:  # for the named need with the request's query, else for the query itself
        named = purpose.select_needs([request.need.strip().upper()])
        need = named[0] if named else Need("", request.query, ())
        wanted.append((replace(need, queries=(request.query,)), scope))
    return await search_each(session.library, reader, purpose, wanted, limits, known=known)


_WORD = re.compile(r"\w+")
_SMALL = frozenset(
    """a an the of and or in on for to with by from as at is are was were be been how what which do does""".split()
)
NEARLY: Final = 0.8


def find_similar_record(query: str, scope: dict[str, Any], records: Sequence[QueryRecord]) -> QueryRecord | None:
    """Find the first record with the same scope whose words nearly match `query` (Jaccard of at least 0.8)."""
    words = _words(query)
    for record in records:
        other = _words(record["query"])
        if record["scope"] == scope and len(words & other) >= NEARLY * max(1, len(words | other)):
            return record
    return None


def _words(query: str) -> frozenset[str]:
    found = frozenset(word.removesuffix("s") for word in _WORD.findall(query.lower()) if word not in _SMALL)
    return found or frozenset(_WORD.findall(query.lower()))


def of_earlier_section(record: QueryRecord, state: RunState) -> bool:
    """Whether another section of the same paper made the search."""
    section = cast(SectionState, state).get("section")
    return record.get("section", section) != section


def query_record(request: SearchEvidence, within: Scope) -> QueryRecord:
    """Make the record of a search, without evidence yet."""
    scope = request.scope().narrow(within).as_dict()
    needs = [request.need.strip().upper()] if request.need else []
    return new_query(request.query, "custom", needs, scope)
