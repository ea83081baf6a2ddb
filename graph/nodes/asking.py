"""route, one_paper, survey and read: from a question to the first evidence, before the agent goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from citeloom.documents import Category
from citeloom.graph.briefs import limits_of
from citeloom.graph.events import evidence_found, progress
from citeloom.graph.numbering import mark_of, number_evidence
from citeloom.graph.state import QueryRecord, ResearchState, Update
from citeloom.graph.workbench import Workbench
from citeloom.models.concurrency import all_settled
from citeloom.models.extractive.subjects import subject_words
from citeloom.models.roles import Candidate
from citeloom.tools import EvidenceLimits, Found, Retrieval, Scope, retrieve, search_evidence
from citeloom.tools.asking import plain_question
from citeloom.tools.evidence import select
from citeloom.tools.funnel import Funnelled, FunnelLimits, funnel
from citeloom.tools.routing import Route, route_in

# Evidence is thin below so many pieces, or from fewer papers: the agent goes on then.
_ENOUGH = {"survey": (4, 2), "one_paper": (2, 1)}
_VARIED = 0.6  # the part of relevance in the choice of passages
_MOST_CHUNKS = 15


async def route(state: ResearchState, runtime: Runtime[Any], bench: Workbench) -> Update:
    """Check the input, begin anew, and decide where the question looks.

    Raises `QuestionError` for a question that cannot be asked, `InputError` for limits that name nothing in the
    library, and `EmptyLibraryError` when there is nothing to search.
    """
    question = plain_question(state.get("question", ""))
    await bench.require_papers()
    limits = await asyncio.to_thread(limits_of, state, bench.library)
    found = await asyncio.to_thread(route_in, question, bench.library)
    if limits.papers:
        asked = limits.papers
        found = Route("one_paper" if len(asked) == 1 else "survey", asked, found.categories)
    told = f"one paper, {found.papers[0]}" if found.track == "one_paper" else "a survey"
    kinds = ", ".join(category.name.lower().replace("_", " ") for category in found.categories)
    runtime.stream_writer(progress("routed", f"route: {told}{f'; sections: {kinds}' if kinds else ''}"))
    return {
        "question": question,
        "route": {
            "track": found.track,
            "papers": list(found.papers),
            "categories": [category.name.lower() for category in found.categories],
        },
        "shortlist": [],
        "found": [],
        "messages": Overwrite([]),
        "queries": Overwrite([]),
        "evidence": Overwrite([dict(record) for record in state.get("recalled", [])]),
        "searches_used": Overwrite(0),
        "agent_turns": Overwrite(0),
        "warnings": Overwrite([]),
        "pending_calls": [],
        "searching": False,
        "before_repair": None,
        "repairs": 0,
        "repairing": False,
        "findings": [],
        "verdicts": [],
        "text": "",
        "result": {},
        "answered": False,
    }


def to_track(state: ResearchState) -> Literal["one_paper", "survey"]:
    """To the one paper that the question is about, or to the library."""
    return state["route"]["track"]


async def one_paper(state: ResearchState, runtime: Runtime[Any], bench: Workbench) -> Update:
    """The passages of the paper that bear on the question, from the kinds of section it asks for first."""
    found = await _funnelled(state, bench)
    paper = found.papers[0].paper
    runtime.stream_writer(progress("shortlisted", f"stage 1, papers: {paper.key} ({paper.title})", total=1))
    return _looked_into(found, runtime)


async def survey(state: ResearchState, runtime: Runtime[Any], bench: Workbench) -> Update:
    """The papers whose summaries are nearest to the question, and the passages of these that bear on it."""
    found = await _funnelled(state, bench)
    count = len(found.papers)
    by = "named" if state["route"]["papers"] else "nearest by summary"
    runtime.stream_writer(progress("shortlisted", f"stage 1, papers: {count} {by}", total=count))
    return _looked_into(found, runtime)


async def read(state: ResearchState, runtime: Runtime[Any], bench: Workbench) -> Update:
    """Read the passages side by side; when none bears on the question, search the whole library once more. What the
    user found lacking in an answer is searched for by itself.

    The agent is asked to go on when the evidence is thin.
    """
    roles = await bench.roles(runtime)
    reader = roles.answering.reader
    question, limits = _sought(state), bench.limits
    candidates = await asyncio.to_thread(_candidates, state["found"], bench)
    readings = await all_settled(reader.read(question, candidate) for candidate in candidates)
    one = state["route"]["track"] == "one_paper"
    kept = select(question, list(zip(candidates, readings, strict=True)), _limits(bench, one_paper=one))
    runtime.stream_writer(
        progress("searched", f"stage 3, evidence: {len(kept)} of {len(candidates)} passages", passages=len(kept))
    )
    scopes: list[dict[str, Any]] = [{"papers": state["shortlist"]}]
    searches: list[Sequence[Found]] = [kept]
    strong = any(one or item.reading.score >= bench.settings.answer_threshold for item in kept)
    if not strong:
        within = await asyncio.to_thread(limits_of, state, bench.library)
        wider = await search_evidence(bench.library, reader, question, within, limits)
        runtime.stream_writer(progress("searched", f"{len(wider)} passages in the whole library", passages=len(wider)))
        scopes.append(within.as_dict())
        searches.append(wider)
        kept = [*kept, *wider]
        strong = any(item.reading.score >= bench.settings.answer_threshold for item in wider)
    asked = [question] * len(searches)
    if lacking := subject_words(state.get("feedback", "")):
        within = await asyncio.to_thread(limits_of, state, bench.library)
        more = await search_evidence(bench.library, reader, lacking, within, limits)
        runtime.stream_writer(progress("searched", f"{len(more)} passages for: {lacking}", passages=len(more)))
        scopes.append(within.as_dict())
        searches.append(more)
        asked.append(lacking)
        kept = [*kept, *more]
    # What earlier answers cited is read anew where it is found again.
    recalled = {mark_of(record): record["id"] for record in state["evidence"]}
    new, ids = number_evidence([], searches, {**state.get("evidence_ids", {}), **recalled})
    for event in evidence_found(new):
        runtime.stream_writer(event)
    records: list[QueryRecord] = [
        {"query": query, "origin": "default", "scope": scope, "evidence_ids": of_search}
        for query, scope, of_search in zip(asked, scopes, ids, strict=True)
    ]
    pieces, papers = _ENOUGH[state["route"]["track"]]
    chunks = {item.candidate.chunk.id: item.candidate.paper.key for item in kept}
    thin = not strong or len(chunks) < pieces or len(set(chunks.values())) < papers
    searching = thin and not state.get("single_shot") and bench.settings.max_search_iterations > 0
    return {"evidence": new, "queries": records, "searching": searching}


def _limits(bench: Workbench, *, one_paper: bool) -> EvidenceLimits:
    """How much of what was read is kept: a little more than of one search for a section, and any share of one paper
    where that is what is asked about."""
    limits = bench.limits
    most = limits.top_k_final + limits.top_k_final // 2
    return replace(limits, top_k_final=most, per_paper=most if one_paper else limits.per_paper + 1)


def _sought(state: ResearchState) -> str:
    """What is searched for: the question, with what the user said is lacking in the answer to it."""
    return f"{state['question']} {state.get('feedback', '')}".strip()


async def _funnelled(state: ResearchState, bench: Workbench) -> Funnelled:
    record = state["route"]
    categories = tuple(Category[name.upper()] for name in record["categories"])
    where = Route(record["track"], tuple(record["papers"]), categories)
    within = await asyncio.to_thread(limits_of, state, bench.library)
    settings = bench.settings
    how = Retrieval(settings.retrieval_mode, mmr=_VARIED, rerank=settings.rerank)

    async def search(query: str, k: int, scope: Scope) -> list[Candidate]:
        return [hit.candidate for hit in await retrieve(bench.library, query, k, scope, how)]

    papers = state.get("sources") or settings.answer_sources
    limits = FunnelLimits(papers, max(_MOST_CHUNKS, 2 * papers))
    return await funnel(bench.library, search, _sought(state), where, limits, within)


def _looked_into(found: Funnelled, runtime: Runtime[Any]) -> Update:
    runtime.stream_writer(progress("found", f"stage 2, passages: {len(found.chunks)} to read", total=len(found.chunks)))
    return {
        "shortlist": [item.paper.key for item in found.papers],
        "found": [(candidate.chunk.id, round(candidate.vector_score, 4)) for candidate in found.chunks],
    }


def _candidates(found: Sequence[tuple[str, float]], bench: Workbench) -> list[Candidate]:
    scores = dict(found)
    return [
        Candidate(chunk, bench.library.paper(chunk.key), scores[chunk.id])
        for chunk in bench.library.chunks(list(scores))
    ]
