"""default_queries, plan_needs and gather: the first searches of every section."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from ...drafts.written_draft import QueryRecord
from ...experiment import SECTION_KINDS, ExperimentError, parse_experiment
from ...plurals import counted
from ...roles.extractive.statement_needs import is_cited, section_needs
from ...roles.protocols import AnswerBrief, Purpose
from ...tools.evidence_search import nearest_chunks, read_in_waves
from ...tools.scope import Scope
from ...tools.window_search import propose_windows
from ..input_check import require_given
from ..prompt_fitting import pinned_papers, search_limits
from ..role_inputs import brief_of
from ..run_events import findings_emitter, progress
from ..section_queries import default_queries as queries_for, without_own_results
from ..session import Session
from ..state import (
    ResearchState,
    RunState,
    SectionInput,
    SectionState,
    Update,
    before_writing,
    first_searches,
    nothing_done,
    purpose_of,
    recorded,
    table_searches,
)
from .ask import begin_steering

# Pieces of evidence from earlier sections that a section of a paper is shown besides its own.
OFFERED: Final = 12
_NEAR_PAPERS: Final = 10  # papers by summary, whose titles are shown to the planner of needs


async def default_queries(state: SectionState, runtime: Runtime[Any], session: Session) -> Update:
    """Check the input and reset the state, so that a thread given another section forgets the previous one.

    Raises `ExperimentError` for a field of the wrong type or a missing field that the section requires, and
    `EmptyLibraryError` when there is nothing to search.
    """
    kind = state.get("section")
    if kind not in SECTION_KINDS:  # the server and parent graphs pass on whatever they were given
        raise ExperimentError(
            f"input: field section: expected one of {', '.join(SECTION_KINDS)}, got {kind!r}.",
            help="The input is {section, experiment}, the latter with the contents of exp.json.",
        )
    require_given(state, "experiment", SectionInput)
    experiment = await asyncio.to_thread(parse_experiment, state["experiment"], kind)
    await session.require_papers()
    queries = await asyncio.to_thread(queries_for, kind, experiment, session.library.embedding.count_tokens)
    in_paper = "written" in state
    begun = f"{kind} ({len(state['written']) + 1} of {len(SECTION_KINDS)})" if in_paper else None
    said = f"{counted(len(queries), 'default query', 'default queries')} for the {kind}"
    runtime.stream_writer(progress("queries", said, total=len(queries), section=begun))
    records: list[QueryRecord] = [
        {"section": kind, "query": query, "origin": "default", "scope": {}, "evidence_ids": []} for query in queries
    ]
    return {
        **nothing_done(),
        "queries": Overwrite([*state["queries"], *records] if in_paper else records),
        **({"offered": []} if in_paper else {"evidence": Overwrite([]), **begin_steering(state, session)}),
    }


async def plan_needs(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Plan the needs of the section or question before any search."""
    roles = await session.roles(runtime)
    brief, _ = await brief_of(state, session)
    purpose = await asyncio.to_thread(purpose_of, state)
    library = session.library
    vector = await library.embedding.embed_query(purpose.text)
    near = await asyncio.to_thread(library.nearest_papers, vector, _NEAR_PAPERS)
    titles = [f"{item.paper.title} ({item.paper.year or 'no year'})" for item in near]
    in_all = counted(len(await asyncio.to_thread(library.papers)), "paper")
    plan = await roles.needs.needs(brief, [*titles, f"({in_all} in all)"])
    needs = plan.needs
    # Without a model each is named by the author's own paragraph.
    if "agent" not in session.extractive and not isinstance(brief, AnswerBrief):
        own = await asyncio.to_thread(without_own_results, needs, brief.experiment)
        needs = own or section_needs(brief.queries)
    # In a paper the needs of all sections have distinct ids, since evidence refers to its need by id.
    before = sum(len(written["needs"]) for written in cast(SectionState, state).get("written", ()))
    needs = tuple(replace(need, id=f"N{number}") for number, need in enumerate(needs, start=before + 1))
    said = f"{counted(len(needs), 'need')}: {'; '.join(need.text for need in needs)}"
    runtime.stream_writer(progress("needs", said, total=len(needs)))
    planned: Update = {"needs": [need.as_dict() for need in needs]}
    route = cast(ResearchState, state).get("route")
    if route and plan.kind and route["track"] == "survey":  # a named paper is read whatever the question asks of it
        planned["route"] = {**route, "kind": plan.kind}
    return planned


async def gather(state: SectionState, runtime: Runtime[Any], session: Session) -> Update:
    """Search for all needs together, and read the windows found in waves, best first."""
    roles = await session.roles(runtime)
    purpose = await asyncio.to_thread(purpose_of, state)
    limits = await search_limits(session, runtime, section=True)
    proposed = limits.windows(limits.read_tokens, len(purpose.needs))
    known = await asyncio.to_thread(session.library.papers) if "reader" in session.extractive else ()
    pinned = await pinned_papers(session)
    named = {
        need.id: [*pinned, *(paper.key for paper in known if is_cited(paper, need.text) and paper.key not in pinned)]
        for need in purpose.needs
    }
    windows = await propose_windows(
        session.library, purpose.needs, Scope(), proposed, limits.retrieval, candidates=named
    )
    papers = len({window.paper.key for window in windows})
    said = f"{counted(len(windows), 'passage')} of {counted(papers, 'paper')} to read"
    runtime.stream_writer(progress("found", said, total=len(windows)))
    emit = findings_emitter(runtime.stream_writer)
    searched = await read_in_waves(roles.reader, purpose, windows, limits, session.library, on_findings=emit)
    said = f"{counted(len(searched.found), 'finding')} from {counted(searched.shown, 'passage')}"
    runtime.stream_writer(progress("searched", said, passages=len(searched.found)))
    of_tables = await asyncio.to_thread(table_searches, state, session.library)
    searches = [*of_tables, *first_searches(purpose.needs, searched, {})]
    update = recorded(state, state.get("evidence", []), searches, runtime.stream_writer)
    update["searching"] = session.settings.max_search_iterations > 0 and "agent" not in session.extractive
    if "written" in state:
        update["offered"] = await _offered(state, update, purpose, session)
    return update


async def _offered(state: SectionState, found: Update, purpose: Purpose, session: Session) -> list[str]:
    """The evidence from earlier sections that best fits this section's needs, without what this section found."""
    own = {identifier for record in found["queries"] for identifier in record["evidence_ids"]}
    ids: dict[str, list[str]] = {}
    for record in state.get("evidence", []):
        if record["id"] not in own:
            ids.setdefault(record["chunk_id"], []).append(record["id"])
    queries = [query for need in purpose.needs for query in need.queries]
    best = await nearest_chunks(session.library, queries, list(ids), OFFERED)
    return [identifier for name in best for identifier in ids[name]][:OFFERED]


def to_agent_or_generate(state: SectionState) -> Literal["agent", "ask_evidence", "generate"]:
    """Go to the planner while it may search, otherwise to the writer."""
    return "agent" if state.get("searching") else before_writing(state)
