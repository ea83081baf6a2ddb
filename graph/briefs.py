"""From plain state to what a role is told: evidence with its texts, fetched from the library by id."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import ToolMessage

from citeloom.documents import Chunk, Evidence, Paper, text_hash
from citeloom.errors import InputError
from citeloom.experiment import parse_experiment
from citeloom.graph.state import DraftRecord, QueryRecord, ResearchState, RunState, SectionState
from citeloom.graph.workbench import Workbench
from citeloom.models.briefs import AnswerBrief, Brief, EarlierSection, SectionBrief, Shown, Source, Turn
from citeloom.models.roles import Draft, QuoteSpan
from citeloom.stores.library import Library
from citeloom.tools.assembly import assemble_context
from citeloom.tools.papers import year_range
from citeloom.tools.scope import Scope


async def brief_of(state: RunState, bench: Workbench) -> tuple[Brief, list[str]]:
    """The brief for the state as it stands, and a warning for each piece of evidence that is gone."""
    evidence = [Evidence.from_dict(record) for record in shown_evidence(state)]
    sources, gone = await asyncio.to_thread(sources_for, bench.library, evidence)
    known = set(state.get("warnings", []))
    lost = [warning for warning in gone if warning not in known]
    if "question" in state:
        return await asyncio.to_thread(_answer_brief, cast(ResearchState, state), sources, bench), lost
    return _section_brief(cast(SectionState, state), sources, bench), lost


def _section_brief(state: SectionState, sources: Sequence[Source], bench: Workbench) -> SectionBrief:
    return SectionBrief(
        kind=state["section"],
        experiment=parse_experiment(state["experiment"]),
        sources=tuple(sources),
        queries=_queries(state),
        searches_left=_searches_left(state, bench),
        words=bench.settings.section_words,
        earlier=earlier_sections(state),
    )


def _answer_brief(state: ResearchState, sources: Sequence[Source], bench: Workbench) -> AnswerBrief:
    """What is known of a question; evidence that only the conversation before it had is kept apart."""
    fresh = _of_this_question(state)
    found = [source for source in sources if source.evidence.id in fresh]
    contexts = assemble_context(bench.library, [source.evidence.chunk_id for source in found])
    ids: dict[str, list[str]] = {}
    for source in found:
        ids.setdefault(source.evidence.chunk_id, []).append(source.evidence.id)
    return AnswerBrief(
        question=state["question"],
        sources=tuple(found),
        queries=_queries(state),
        searches_left=_searches_left(state, bench),
        words=state.get("words") or bench.settings.answer_words,
        survey=state["route"]["track"] == "survey",
        answerable=is_answerable(state, bench),
        most_papers=state.get("sources") or bench.settings.answer_sources,
        shown=tuple(
            Shown(
                context.paper.key,
                passage.section,
                passage.category,
                passage.text,
                tuple(identifier for chunk in passage.found for identifier in ids[chunk]),
            )
            for context in contexts
            for passage in context.passages
        ),
        recalled=tuple(source for source in sources if source.evidence.id not in fresh),
        turns=tuple(Turn(turn["question"], turn["answer"]) for turn in state.get("turns", [])),
        feedback=state.get("feedback", ""),
    )


def is_answerable(state: RunState, bench: Workbench) -> bool:
    """Whether any evidence bears on the question enough; what merely shares its field does not.

    In a paper that the question names, all that was kept does: whoever names it knows that it is the place. A chat
    model may answer from what was cited before, and declines where that says nothing of the question.
    """
    given = cast(ResearchState, state)
    if given.get("recalled") and "writer" not in bench.extractive:
        return True
    named = given["route"]["papers"] if given["route"]["track"] == "one_paper" else ()
    fresh = [record for record in state.get("evidence", []) if record["id"] in _of_this_question(given)]
    return any(record["key"] in named or record["llm_score"] >= bench.settings.answer_threshold for record in fresh)


def _of_this_question(state: ResearchState) -> set[str]:
    """The evidence that was found for the question; an answer that is written anew rests on what it had as well."""
    fresh = {identifier for record in state.get("queries", []) for identifier in record["evidence_ids"]}
    return fresh | {record["id"] for record in state.get("recalled", [])} if state.get("feedback") else fresh


def _queries(state: RunState) -> tuple[str, ...]:
    return tuple(record["query"] for record in own_queries(state))


def _searches_left(state: RunState, bench: Workbench) -> int:
    return max(0, bench.settings.max_search_iterations - state.get("searches_used", 0))


def limits_of(state: RunState, library: Library) -> Scope:
    """The part of the library that the user limits the run to; blocks.

    Raises `InputError` for an unknown key or venue, and for years the wrong way round.
    """
    given = cast(ResearchState, state)
    years = year_range(given.get("min_year"), given.get("max_year"))
    return Scope.within(library, given.get("papers", []), (), years, given.get("venue", ""))


def own_queries(state: RunState) -> list[QueryRecord]:
    """The searches of the question or the section under way."""
    section = cast(SectionState, state).get("section")
    return [record for record in state.get("queries", []) if record.get("section") == section]


def shown_evidence(state: RunState) -> list[dict[str, Any]]:
    """The evidence of the run; in a paper what the section's searches found, and what earlier sections offer."""
    evidence = state.get("evidence", [])
    if "written" not in state:
        return evidence
    offered = cast(SectionState, state).get("offered", ())
    ids = {*offered, *(found for query in own_queries(state) for found in query["evidence_ids"])}
    return [record for record in evidence if record["id"] in ids]


def earlier_sections(state: SectionState) -> tuple[EarlierSection, ...] | None:
    """The sections of the same paper that are written already; None for a section that is written by itself."""
    if "written" not in state:
        return None
    return tuple(EarlierSection(written["section"], written["draft"]["text"]) for written in state["written"])


def sources_for(library: Library, evidence: Sequence[Evidence]) -> tuple[list[Source], list[str]]:
    """Sources whose chunk still holds the quote, in order, and a line for each that is lost.

    Chunk ids shift when a paper is edited, so evidence is found by its chunk's hash, else by its quote.
    """
    by_id = {chunk.id: chunk for chunk in library.chunks([item.chunk_id for item in evidence])}
    sources: list[Source] = []
    lost: list[str] = []
    for item in evidence:
        chunk = by_id.get(item.chunk_id)
        if chunk is None or text_hash(chunk.text) != item.chunk_hash:
            chunk = _found_again(library, item)
        if chunk is None:
            lost.append(f"Source changed: the words of {item.id} are no longer in {item.key}; it is left out.")
            continue
        start = item.start if chunk.text[item.start : item.end] == item.quote else chunk.text.index(item.quote)
        moved = replace(item, chunk_id=chunk.id, start=start, end=start + len(item.quote))
        sources.append(Source(moved, library.paper(item.key), chunk.text, chunk.category))
    return sources, lost


def _found_again(library: Library, item: Evidence) -> Chunk | None:
    try:
        chunks = library.paper_chunks(item.key)
    except InputError:
        return None
    same = [chunk for chunk in chunks if text_hash(chunk.text) == item.chunk_hash]
    holding = [chunk for chunk in chunks if item.quote in chunk.text]
    return next(iter([*same, *holding]), None)


def chunks_shown(state: RunState) -> list[str]:
    """The ids of the chunks that the section's agent was shown by its reading tools, each once."""
    wanted = [
        item
        for message in state.get("messages", [])
        if isinstance(message, ToolMessage) and message.artifact
        for item in message.artifact["chunks"]
    ]
    return list(dict.fromkeys(wanted))


def read_beside(library: Library, ids: Sequence[str]) -> list[tuple[Chunk, Paper]]:
    """These chunks with their papers, those that are still there."""
    chunks = library.chunks(ids)
    papers = {key: library.paper(key) for key in dict.fromkeys(chunk.key for chunk in chunks)}
    return [(chunk, papers[chunk.key]) for chunk in chunks]


def draft_of(state: RunState) -> Draft:
    """The latest draft as a typed value."""
    record = state["draft"]
    return Draft(
        record["text"],
        truncated=record["truncated"],
        quotes=tuple(QuoteSpan(*span) for span in record["quotes"]),
        notes=tuple(record["notes"]),
    )


def record_of(draft: Draft) -> DraftRecord:
    """The draft as the state holds it."""
    return {
        "text": draft.text,
        "truncated": draft.truncated,
        "quotes": [(span.evidence_id, span.start, span.end) for span in draft.quotes],
        "notes": list(draft.notes),
    }


def with_chosen_quotes(sources: Sequence[Source], draft: Draft) -> list[Source]:
    """The sources with the words that the writer chose, where it chose others than the reader."""
    spans = {span.evidence_id: span for span in draft.quotes}
    chosen = []
    for source in sources:
        span = spans.get(source.evidence.id)
        if span is not None:
            quote = source.text[span.start : span.end]
            source = replace(source, evidence=replace(source.evidence, quote=quote, start=span.start, end=span.end))
        chosen.append(source)
    return chosen
