"""route and read; default_queries, plan_needs and gather: from a question or an experiment to the first evidence."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from ...documents import Category
from ...documents.chunking import Window
from ...drafts.written_draft import QueryRecord, ScreeningRecord, draft_record, new_query
from ...experiment import SECTION_KINDS, ExperimentError, parse_experiment
from ...plurals import counted
from ...roles.extractive.follow_ups import is_remark
from ...roles.extractive.statement_needs import is_cited, section_needs
from ...roles.protocols import AnswerBrief, Draft, Purpose, ScreenedPapers, Turn
from ...text.wordings import subject_words
from ...tools.evidence_search import FurtherSearch, chunk_ids, nearest_chunks, read_in_waves, search_each
from ...tools.found_evidence import EvidenceLimits, SearchResult, coverage
from ...tools.paper_cards import nearest_findings, screen_papers
from ...tools.question_routing import Route, question_kind, route_in
from ...tools.scope import Scope, plain_question
from ...tools.window_search import propose_windows
from ..input_check import require_given
from ..prompt_fitting import pinned_papers, search_limits
from ..role_inputs import brief_of, limits_of
from ..run_events import emit_findings, progress
from ..section_queries import default_queries as queries_for, without_own_results
from ..session import Session
from ..state import (
    PlannedSearch,
    ResearchInput,
    ResearchState,
    RunState,
    SectionInput,
    SectionState,
    Update,
    before_writing,
    evidence_key,
    first_searches,
    initial_state,
    needs_of,
    purpose_of,
    record_searches,
    table_searches,
)
from .ask import begin_steering

_MOST_CHUNKS = 12
_NEAREST = 40  # papers whose cards are read for a focused question if nothing meets a need
_NEAR = 3  # findings or papers that are named if nothing answers the question
_CHUNKS_OF_A_NEED = 8
_SECTION_NAMES: Final[Mapping[Category, str]] = {
    Category.ABSTRACT: "abstracts",
    Category.INTRODUCTION: "introductions",
    Category.METHOD: "methods sections",
    Category.EVALUATION: "results sections",
    Category.CONCLUSION: "conclusions",
    Category.RELATED_WORK: "related work",
    Category.OTHER: "other sections",
}


async def route(state: ResearchState, runtime: Runtime[Any], session: Session) -> Update:
    """Check the input, reset the state, and decide where to look for an answer.

    Raises `QuestionError` for a question that cannot be asked, `InputError` for limits that match nothing in the
    library, and `EmptyLibraryError` when there is nothing to search.
    """
    require_given(state, "question", ResearchInput)
    question = plain_question(state["question"])
    await session.require_papers()
    limits = await asyncio.to_thread(limits_of, state, session.library)
    if state.get("follow_up") and state.get("turns"):
        question = await condense_follow_up(question, state["turns"], runtime, session)
    remark = "writer" in session.extractive and is_remark(question)
    found = await asyncio.to_thread(route_in, question, session.library)
    narrowed = found.notice()
    if limits.papers:
        narrowed = ""
        asked = limits.papers
        found = Route("one_paper" if len(asked) == 1 else "survey", asked, found.categories)
    target = f"question about one paper, {found.papers[0]}" if found.track == "one_paper" else "question across papers"
    kinds = ", ".join(_SECTION_NAMES[category] for category in found.categories)
    where = f"{target}{f'; searching {kinds} first' if kinds else ''}"
    runtime.stream_writer(progress("routed", "no question, so nothing is searched" if remark else where))
    return {
        **initial_state(),
        **begin_steering(state, session),
        "question": question,
        "route": {
            "track": found.track,
            "papers": list(found.papers),
            "categories": [category.name.lower() for category in found.categories],
            "kind": "remark" if remark else question_kind(question, found.track),
            "start": list(found.start),
        },
        "shortlist": [],
        "found": [],
        "queries": Overwrite([]),
        "evidence": Overwrite([dict(record) for record in state.get("recalled", [])]),
        "draft": draft_record(Draft("")),
        "tables": [],
        "warnings": Overwrite([narrowed] if narrowed else []),
        "answered": False,
    }


async def condense_follow_up(asked: str, past: Sequence[Turn], runtime: Runtime[Any], session: Session) -> str:
    """Complete the question from earlier turns; emits the completed question if it differs."""
    roles = await session.roles(runtime)
    question = plain_question(await roles.rewrite(asked, past))
    if question != asked:
        runtime.stream_writer(progress("rewritten", f"understood as: {question}"))
    return question


def to_needs_or_render(state: ResearchState) -> Literal["plan_needs", "render"]:
    """Go to `render` with nothing found for a remark, otherwise to `plan_needs`."""
    return "render" if state["route"]["kind"] == "remark" else "plan_needs"


def to_table_or_read(state: ResearchState) -> Literal["tabulate", "ask_needs", "read"]:
    """Go to `tabulate` if all papers of some kind are asked for, otherwise to `read` or `ask_needs`."""
    route = state["route"]
    return "tabulate" if route["track"] == "survey" and route["kind"] == "inventory" else before_reading(state)


def before_reading(state: RunState) -> Literal["ask_needs", "read"]:
    """Go to `ask_needs` if a person is asked about the needs, otherwise to `read`."""
    return "ask_needs" if "needs" in state.get("interrupts", ()) else "read"


async def _find(
    state: ResearchState, runtime: Runtime[Any], session: Session, within: Scope
) -> tuple[list[Window], ScreenedPapers]:
    """Find the windows to read, in the paper asked about, or in papers found by summaries, passages and cards."""
    record, purpose = state["route"], purpose_of(state)
    screened = await _screen(state, runtime, session) if _is_broad(state) else ScreenedPapers({})
    candidates = {need: list(dict.fromkeys([*record["start"], *keys])) for need, keys in screened.named.items()}
    usual = await search_limits(session, runtime, section=False)
    limits = usual.for_breadth() if candidates else usual
    for need in purpose.needs if (pinned := await pinned_papers(session)) else ():
        candidates[need.id] = list(dict.fromkeys([*pinned, *candidates.get(need.id, ())]))
    categories = tuple(Category[name.upper()] for name in record["categories"])
    scope = Scope(tuple(record["papers"]), categories).narrow(within)
    proposed, asked = limits.windows(limits.read_tokens, len(purpose.needs)), purpose.text
    if "reader" in session.extractive:  # each passage is scored for the part of the question that found it
        proposed, asked = replace(proposed, hits=_MOST_CHUNKS + _CHUNKS_OF_A_NEED * len(purpose.needs)), ""
    windows = await propose_windows(
        session.library, purpose.needs, scope, proposed, limits.retrieval, asked=asked, candidates=candidates
    )
    count = len({window.paper.key for window in windows})
    said = f"{counted(count, 'paper')} {'named' if record['papers'] else 'found by their summaries and passages'}"
    if record["track"] == "one_paper":
        paper = await asyncio.to_thread(session.library.paper, record["papers"][0])
        count, said = 1, f"searching {paper.key} ({paper.title})"
    runtime.stream_writer(progress("shortlisted", said, total=count))
    runtime.stream_writer(progress("found", f"{counted(len(windows), 'passage')} to read", total=len(windows)))
    return windows, screened


async def _screen(
    state: ResearchState,
    runtime: Runtime[Any],
    session: Session,
    nearest: int = sys.maxsize,
    known: Collection[str] = (),
) -> ScreenedPapers:
    """Screen for papers that may bear on the needs, by their cards; `nearest` limits how many cards are read."""
    screener = (await session.roles(runtime)).screener
    most = min(session.settings.screened_papers, nearest)
    scope = Scope(tuple(state["route"]["papers"])).narrow(await asyncio.to_thread(limits_of, state, session.library))
    if screener is None or not most or len(scope.papers) == 1:
        return ScreenedPapers({})
    purpose = await asyncio.to_thread(purpose_of, state)
    screened = await screen_papers(session.library, screener, purpose, scope, most, known)
    if screened.cards:
        keys = {*screened.keys, *state["route"]["start"]}
        runtime.stream_writer(
            progress("shortlisted", f"{counted(len(keys), 'paper')} named by their cards", total=len(keys))
        )
    return screened


async def read(state: ResearchState, runtime: Runtime[Any], session: Session) -> Update:
    """Find passages and read them in waves; meanwhile a search in other words is prepared for unmet needs.

    The user's feedback on an answer is searched for separately. For a broad question the agent continues from here,
    unless disabled.
    """
    roles = await session.roles(runtime)
    reader = roles.answer_reader
    usual = await search_limits(session, runtime, section=False)
    purpose, limits = purpose_of(state), _limits(state, usual, session)
    within = await asyncio.to_thread(limits_of, state, session.library)
    windows, screened = await _find(state, runtime, session, within)
    shortlist = list(dict.fromkeys(window.paper.key for window in windows))
    further = _further_search(state, runtime, session, windows, usual, within)
    searched = await read_in_waves(
        reader,
        purpose,
        windows,
        limits,
        session.library,
        further=further,
        on_findings=partial(emit_findings, runtime.stream_writer),
    )
    said = f"{counted(len(searched.found), 'finding')} from {counted(searched.shown, 'passage')}"
    runtime.stream_writer(progress("searched", said, passages=len(searched.found)))
    again = [  # with the findings of these searches only
        PlannedSearch(
            new_query(need.search, "need", [need.id], within.as_dict()),
            SearchResult(tuple(item for item in searched.found if item.query == need.search), ()),
        )
        for need in (further.needs if further else ())
        if need.id in searched.again
    ]
    later = {search.record["query"] for search in again}
    first = replace(searched, found=tuple(item for item in searched.found if item.query not in later))
    scope: dict[str, Any] = {"papers": shortlist} if shortlist else {}
    searches = [*first_searches(purpose.needs, first, scope), *again]

    async def more(query: str, said: str, known: Sequence[str] = ()) -> None:
        need = replace(purpose.needs[0], queries=(query,))
        asked = replace(purpose, text=query)
        (found,) = await search_each(session.library, reader, asked, [(need, within)], usual, known=known)
        runtime.stream_writer(
            progress("searched", f"{counted(len(found.found), 'finding')} {said}", passages=len(found.found))
        )
        searches.append(PlannedSearch(new_query(query, "default", [need.id], within.as_dict()), found))

    one = state["route"]["track"] == "one_paper"
    least = session.settings.answer_threshold
    if further is None and not any(one or item.finding.score >= least for item in searched.found):
        await more(purpose.text, "in the whole library", searched.read)
    if lacking := subject_words(state.get("feedback", "")):  # passages read for the question may be read again
        await more(lacking, f"for: {lacking}")
    if limits.near and not any(search.searched.found for search in searches):
        named = [*state["route"]["start"], *screened.near]
        near = await asyncio.to_thread(nearest_findings, session.library, purpose.needs[0], windows, named, _NEAR)
        searches[0] = replace(searches[0], searched=replace(searches[0].searched, found=tuple(near)))
    # Evidence of earlier answers that is found again keeps its id.
    recalled = {evidence_key(record): record["id"] for record in state["evidence"]}
    given = {**state.get("evidence_ids", {}), **recalled}
    update = record_searches(state, [], searches, runtime.stream_writer, given)
    update |= {"shortlist": shortlist, "found": [chunk.id for window in windows for chunk in window.chunks]}
    if screened.cards:
        record: ScreeningRecord = {"cards": screened.cards, "opened": list(screened.keys), "near": dict(screened.near)}
        update["route"] = {**state["route"], "screened": record}
    # A focused question is answered without the agent, whose turns and searches would run one after another.
    broad = _may_search_on(state, session) and _is_broad(state)
    needs = coverage(needs_of(state), update["evidence"], update["queries"]) if broad else []
    thin = any(item.status != "met" or len(item.evidence) < session.settings.enough_findings for item in needs)
    return {**update, "searching": thin}


def _is_broad(state: ResearchState) -> bool:
    return state["route"]["kind"] in ("survey", "inventory")


def _may_search_on(state: ResearchState, session: Session) -> bool:
    """Whether further searches are allowed after the first; without a chat model there are none."""
    searches = session.settings.max_search_iterations
    return not state.get("single_shot") and searches > 0 and "agent" not in session.extractive


def _further_search(
    state: ResearchState,
    runtime: Runtime[Any],
    session: Session,
    known: Sequence[Window],
    limits: EvidenceLimits,
    within: Scope,
) -> FurtherSearch | None:
    """Prepare a focused question's second search: reworded, and by cards of unread papers if nothing meets a need."""
    if not _may_search_on(state, session) or _is_broad(state) or "reader" in session.extractive:
        return None
    purpose = purpose_of(state)
    words = [(need.text, purpose.text) if not place else (need.text,) for place, need in enumerate(purpose.needs)]
    needs = [
        replace(need, queries=other)
        for need, said in zip(purpose.needs, words, strict=True)
        if (other := tuple(query for query in said if query not in need.queries))
    ]
    if not needs:
        return None
    proposed = limits.windows(limits.search_tokens * len(needs), len(needs))

    async def windows() -> Sequence[Window]:
        return await propose_windows(session.library, needs, within, proposed, limits.retrieval, known=chunk_ids(known))

    survey = state["route"]["track"] == "survey"

    async def by_cards(read: Collection[str]) -> Sequence[Window]:
        screened = await _screen(state, runtime, session, _NEAREST, read) if survey else ScreenedPapers({})
        if not screened.keys:
            return ()
        scope = replace(within, papers=screened.keys)
        return await propose_windows(session.library, purpose.needs, scope, proposed, limits.retrieval)

    return FurtherSearch(needs, windows, by_cards, session.settings.enough_findings if survey else 0)


def _limits(state: ResearchState, limits: EvidenceLimits, session: Session) -> EvidenceLimits:
    """How much to read and keep: more for a broad question; without a reader model, a bit more of each paper."""
    if "reader" not in session.extractive:
        return replace(limits.for_breadth() if _is_broad(state) else limits, near=_NEAR)
    one = state["route"]["track"] == "one_paper"
    if one:  # the user named the paper, so its nearest passages count, however near
        limits = replace(limits, score_threshold=0.0)
    if limits.top_k_final is None or limits.per_paper is None:
        return limits
    most = limits.top_k_final + limits.top_k_final // 2
    return replace(limits, top_k_final=most, per_paper=most if one else limits.per_paper + 1)


# Pieces of evidence from earlier sections that are offered to a paper's section in addition to its own.
OFFERED: Final = 12
_NEAR_PAPERS: Final = 10  # papers by summary, whose titles are shown to the planner of needs


async def default_queries(state: SectionState, runtime: Runtime[Any], session: Session) -> Update:
    """Check the input and reset the state, so that a thread can be used for another section.

    Raises `ExperimentError` for a field of the wrong type or a missing field that the section requires, and
    `EmptyLibraryError` when there is nothing to search.
    """
    kind = state.get("section")
    if kind not in SECTION_KINDS:  # the server and parent graphs do not validate
        raise ExperimentError(
            f"input: field section: expected one of {', '.join(SECTION_KINDS)}, got {kind!r}.",
            help="The input is {section, experiment}, where experiment has the contents of exp.json.",
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
        **initial_state(),
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
    plan = await roles.plan_needs(brief, [*titles, f"({in_all} in all)"])
    needs = plan.needs
    # Without a model, needs are the author's own paragraphs, which stay as they are.
    if "agent" not in session.extractive and not isinstance(brief, AnswerBrief):
        own = await asyncio.to_thread(without_own_results, needs, brief.experiment)
        needs = own or section_needs(brief.queries)
    # In a paper, ids are unique across sections, since evidence refers to its need by id.
    before = sum(len(written["needs"]) for written in cast(SectionState, state).get("written", ()))
    needs = tuple(replace(need, id=f"N{number}") for number, need in enumerate(needs, start=before + 1))
    said = f"{counted(len(needs), 'need')}: {'; '.join(need.text for need in needs)}"
    runtime.stream_writer(progress("needs", said, total=len(needs)))
    planned: Update = {"needs": [need.as_dict() for need in needs]}
    route = cast(ResearchState, state).get("route")
    if route and plan.kind and route["track"] == "survey":  # a named paper is read for any kind of question
        planned["route"] = {**route, "kind": plan.kind}
    return planned


async def gather(state: SectionState, runtime: Runtime[Any], session: Session) -> Update:
    """Search for all needs together, and read the found windows in waves, best first."""
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
    emit = partial(emit_findings, runtime.stream_writer)
    searched = await read_in_waves(roles.reader, purpose, windows, limits, session.library, on_findings=emit)
    said = f"{counted(len(searched.found), 'finding')} from {counted(searched.shown, 'passage')}"
    runtime.stream_writer(progress("searched", said, passages=len(searched.found)))
    of_tables = await asyncio.to_thread(table_searches, state, session.library)
    searches = [*of_tables, *first_searches(purpose.needs, searched, {})]
    update = record_searches(state, state.get("evidence", []), searches, runtime.stream_writer)
    update["searching"] = session.settings.max_search_iterations > 0 and "agent" not in session.extractive
    if "written" in state:
        update["offered"] = await _choose_offered(state, update, purpose, session)
    return update


async def _choose_offered(state: SectionState, found: Update, purpose: Purpose, session: Session) -> list[str]:
    """Choose evidence from earlier sections that best fits this section's needs and that it has not found itself."""
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
