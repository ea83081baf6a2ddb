"""tools: carries out the tool calls that the guard allowed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime

from ...drafts.written_draft import QueryRecord
from ...models.concurrency import gather_all
from ...plurals import counted
from ...roles.chat.prompt_format import beginning, coverage_lines
from ...tools.evidence_search import search_each
from ...tools.found_evidence import Searched
from ...tools.library_tools import Passages, read_introduction, read_papers, read_summaries, read_window
from ...tools.need_coverage import coverage
from ...tools.scope import Scope
from ...tools.tool_schemas import (
    ContextWindow,
    PaperIntroduction,
    Reading,
    SearchEvidence,
    SearchPapers,
    ToolRequest,
    parse_request,
)
from ..events import evidence_found, progress
from ..evidence_ids import number_evidence
from ..prompt_fitting import search_limits
from ..role_inputs import limits_of
from ..search_requests import need_of, of_earlier_section, of_section, own_first, split_repeats
from ..session import Session
from ..state import ResearchState, RunState, Update
from ..state_conversion import needs_of, own_queries, passages_of, purpose_of
from .agent import may_continue, tool_answer

Evidence = Mapping[str, dict[str, Any]]  # records by id


async def tools(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Run the allowed calls concurrently; ids and answers follow the order of the calls."""
    calls = state["pending_calls"]
    requests = [parse_request(call["name"], call["args"]) for call in calls]
    within = await asyncio.to_thread(limits_of, state, session.library)
    records, repeated = split_repeats(requests, own_first(state), within)
    searched = await _search([requests[number] for number in records], state, runtime, session, within)
    passages = await _read_passages(requests, session)

    new, ids = number_evidence(
        state["evidence"], [search.found for search in searched], cast(ResearchState, state).get("evidence_ids", {})
    )
    evidence = {record["id"]: record for record in state["evidence"]}
    for event in evidence_found(record for record in new if record["id"] not in evidence):
        runtime.stream_writer(event)
    evidence.update((record["id"], record) for record in new)
    for record, found, search in zip(records.values(), ids, searched, strict=True):
        record["evidence_ids"] = found
        record.update(cast(QueryRecord, passages_of(search)))

    answers: list[ToolMessage] = []
    for number, call in enumerate(calls):
        if number in passages:
            answers.append(tool_answer(call["id"], passages[number].lead, passages[number].chunk_ids))
        elif number in repeated:
            answers.append(tool_answer(call["id"], _repeated(repeated[number])))
        else:
            answers.append(tool_answer(call["id"], _listed(records[number], evidence)))
            runtime.stream_writer(_progress_of(records[number]))
    made = sum(bool(call["counted"]) for call in calls)
    queries = [of_section(record, state) for record in records.values()]
    if answers:
        answers[-1] = _with_coverage(answers[-1], state, new, queries, session, made)
    return {
        "messages": answers,
        "evidence": new,
        "queries": [*queries, *_taken_over(repeated.values(), state)],
        "read_chunks": list(dict.fromkeys(name for search in searched for name in search.read)),
        "searches_used": made,
        "pending_calls": [],
        "searching": await asyncio.to_thread(may_continue, state, session, state.get("searches_used", 0) + made),
    }


async def _search(
    requests: Sequence[ToolRequest], state: RunState, runtime: Runtime[Any], session: Session, within: Scope
) -> Sequence[Searched]:
    """The results of new searches, in their order."""
    roles = await session.roles(runtime)
    purpose = await asyncio.to_thread(purpose_of, state)
    question = cast(ResearchState, state).get("question", "")
    reader = roles.answering.reader if question else roles.reader
    limits = await search_limits(session, runtime, section=not question)
    wanted = [
        (need_of(request, purpose), request.scope().narrowed(within))
        for request in requests
        if isinstance(request, SearchEvidence)
    ]
    known = state.get("read_chunks", [])
    return await search_each(session.library, reader, purpose, wanted, limits, known=known)


async def _read_passages(requests: Sequence[ToolRequest], session: Session) -> dict[int, Passages]:
    """What the other requests read, by index of the request."""
    reading = {number: item for number, item in enumerate(requests) if not isinstance(item, SearchEvidence)}
    return dict(zip(reading, await gather_all(_read(item, session) for item in reading.values()), strict=True))


async def _read(request: Reading, session: Session) -> Passages:
    if isinstance(request, ContextWindow):
        return await asyncio.to_thread(read_window, session.library, request.chunk_id, request.window)
    if isinstance(request, PaperIntroduction):
        return await asyncio.to_thread(read_introduction, session.library, request.key)
    if isinstance(request, SearchPapers):
        asked = (request.query, request.min_year, request.max_year, request.page)
        return await asyncio.to_thread(read_papers, session.library, *asked)
    return await read_summaries(session.library, request.query)


def _taken_over(repeated: Iterable[QueryRecord], state: RunState) -> list[QueryRecord]:
    """Repeated searches of a paper's earlier sections, as this section's own; their passages were counted there."""
    nothing = passages_of(Searched((), ()))
    taken = {
        record["query"]: cast(QueryRecord, {**record, **nothing})
        for record in repeated
        if of_earlier_section(record, state)
    }
    return [of_section(record, state) for record in taken.values()]


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


def _repeated(record: QueryRecord) -> str:
    return f"This repeats the query {record['query']!r}; see its evidence."


def _progress_of(record: QueryRecord) -> Any:
    found = len(record["evidence_ids"])
    return progress("searched", f"{counted(found, 'finding')} for: {record['query']}", passages=found)


def _listed(record: QueryRecord, evidence: Evidence) -> str:
    if not record["evidence_ids"]:
        return "Nothing new in the library bears on this query."
    return "\n".join(
        f"[{found['id']}] for {found.get('need') or '-'}, score {found['llm_score']:.1f}, "
        f"chunk {found['chunk_id']}: {beginning(found['summary'])}"
        for found in (evidence[item] for item in record["evidence_ids"])
    )
