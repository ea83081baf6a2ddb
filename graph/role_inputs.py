"""Builds role inputs from graph state: evidence with its texts, fetched from the library by id."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from langchain_core.messages import ToolMessage

from ..documents import Chunk, Evidence, Paper, text_hash
from ..documents.passages import readable_units
from ..errors import InputError
from ..experiment import parse_experiment
from ..plurals import counted
from ..roles.inputs import AnswerBrief, Brief, EarlierSection, PassageSentence, SectionBrief, Source, Turn
from ..roles.protocols import Draft, QuoteSpan
from ..stores.library import Library
from ..text.sentences import leans_back
from ..tools.need_coverage import STRONG
from ..tools.paper_search import year_range
from ..tools.scope import Scope
from .session import Session
from .state import DraftRecord, ResearchState, RunState, SectionState
from .state_conversion import needs_of, own_coverage, own_queries

_FEW: Final = 2  # findings of a need that are shown even when they are weak


async def brief_of(state: RunState, session: Session) -> tuple[Brief, list[str]]:
    """The brief for the current state, and a warning for each piece of evidence that is gone or each retracted paper.

    Evidence from a retracted paper is left out unless the settings let it be cited.
    """
    evidence = [Evidence.from_dict(record) for record in worth_showing(visible_evidence(state), state, session)]
    sources, gone = await asyncio.to_thread(sources_for, session.library, evidence)
    sources, retracted = await asyncio.to_thread(citable_sources, session, sources)
    gone += retracted
    known = set(state.get("warnings", []))
    lost = [warning for warning in gone if warning not in known]
    if "question" in state:
        return await asyncio.to_thread(_answer_brief, cast(ResearchState, state), sources, session), lost
    return await asyncio.to_thread(_section_brief, cast(SectionState, state), sources, session), lost


def _section_brief(state: SectionState, sources: Sequence[Source], session: Session) -> SectionBrief:
    return SectionBrief(
        kind=state["section"],
        experiment=parse_experiment(state["experiment"]),
        sources=tuple(sources),
        queries=_queries(state),
        searches_left=_searches_left(state, session),
        words=session.settings.section_words,
        earlier=earlier_sections(state),
        needs=tuple(own_coverage(state)),
        library=library_line(session.library),
    )


def _answer_brief(state: ResearchState, sources: Sequence[Source], session: Session) -> AnswerBrief:
    """The brief for a question; evidence that only the conversation before it had is kept apart."""
    fresh = _of_this_question(state)
    found = [source for source in sources if source.evidence.id in fresh]
    return AnswerBrief(
        question=state["question"],
        sources=tuple(found),
        queries=_queries(state),
        searches_left=_searches_left(state, session),
        words=state.get("words") or session.settings.answer_words or asked_length(len(needs_of(state))),
        survey=state["route"]["track"] == "survey",
        answerable=is_answerable(state, session),
        most_papers=state.get("sources") or session.settings.answer_sources,
        recalled=tuple(source for source in sources if source.evidence.id not in fresh),
        turns=tuple(Turn(turn["question"], turn["answer"]) for turn in state.get("turns", [])),
        feedback=state.get("feedback", ""),
        needs=tuple(own_coverage(state)),
        library=library_line(session.library),
    )


def asked_length(needs: int) -> int:
    """The default answer length in words: it grows with the number of needs."""
    return min(500, 150 + 60 * needs)


def library_line(library: Library) -> str:
    """The size of the library and its range of years, on one line; blocks."""
    papers = library.papers()
    years = sorted(paper.year for paper in papers if paper.year)
    span = f" of {years[0]} to {years[-1]}" if years and years[0] != years[-1] else ""
    return f"{counted(len(papers), 'paper')}{span}, {counted(library.chunk_count(), 'passage')}"


def is_answerable(state: RunState, session: Session) -> bool:
    """True when some evidence is relevant enough to answer from; merely sharing the field is not. Blocks.

    In a paper that the question names, all evidence that was kept counts: whoever names it knows that it is the place
    to look. A chat model may answer from what was cited before, and declines when that says nothing about the question.
    """
    given = cast(ResearchState, state)
    if given.get("recalled") and "writer" not in session.extractive:
        return True
    named = given["route"]["papers"] if given["route"]["track"] == "one_paper" else ()
    ids = _of_this_question(given)
    least = session.settings.answer_threshold
    good = {
        record["key"]
        for record in state.get("evidence", [])
        if record["id"] in ids and (record["key"] in named or record["llm_score"] >= least)
    }
    return bool(good - _uncitable(session, good))


def _uncitable(session: Session, keys: Collection[str]) -> set[str]:
    """The keys of retracted papers, unless the settings let them be cited."""
    if session.settings.cite_retracted:
        return set()
    records = session.library.records()
    return set(session.retracted(records[key].paper for key in keys if key in records))


def _of_this_question(state: ResearchState) -> set[str]:
    """Ids of the evidence found for the question; a revised answer also rests on the evidence it had."""
    fresh = {identifier for record in state.get("queries", []) for identifier in record["evidence_ids"]}
    return fresh | {record["id"] for record in state.get("recalled", [])} if state.get("feedback") else fresh


def _queries(state: RunState) -> tuple[str, ...]:
    return tuple(record["query"] for record in own_queries(state))


def _searches_left(state: RunState, session: Session) -> int:
    return max(0, session.settings.max_search_iterations - state.get("searches_used", 0))


def limits_of(state: RunState, library: Library) -> Scope:
    """The scope that the user limits the run to; blocks.

    Raises `InputError` for an unknown key or venue, and for years in the wrong order.
    """
    given = cast(ResearchState, state)
    years = year_range(given.get("min_year"), given.get("max_year"))
    return Scope.within(library, given.get("papers", []), (), years, given.get("venue", ""))


def visible_evidence(state: RunState) -> list[dict[str, Any]]:
    """The evidence of the run; in a paper what the section's own searches found, plus what earlier sections offer."""
    evidence = state.get("evidence", [])
    if "written" not in state:
        return evidence
    offered = cast(SectionState, state).get("offered", ())
    ids = {*offered, *(found for query in own_queries(state) for found in query["evidence_ids"])}
    return [record for record in evidence if record["id"] in ids]


def worth_showing(records: Sequence[dict[str, Any]], state: RunState, session: Session) -> list[dict[str, Any]]:
    """The evidence that planner and writer see: for each need its best strong findings, up to the configured number.

    Weak findings are shown only for a need with hardly a strong one. Evidence that a conversation recalls or that
    earlier sections of a paper offer is always kept. Without a chat model as reader, and in runs older than planned
    needs, all evidence is shown.
    """
    if not state.get("needs") or "reader" in session.extractive:
        return list(records)
    recalled = {record["id"] for record in cast(ResearchState, state).get("recalled", [])}
    shown = {*recalled, *cast(SectionState, state).get("offered", ())}
    for need in dict.fromkeys(record.get("need", "") for record in records):
        serving = sorted(
            (item for item in records if item.get("need", "") == need), key=lambda item: -item["llm_score"]
        )
        strong = sum(item["llm_score"] >= STRONG for item in serving)
        most = min(session.settings.top_k_final, max(strong, _FEW))
        shown.update(item["id"] for item in serving[:most])
    return [record for record in records if record["id"] in shown]


def earlier_sections(state: SectionState) -> tuple[EarlierSection, ...] | None:
    """The sections of the same paper that are already written; None for a section written on its own."""
    if "written" not in state:
        return None
    return tuple(EarlierSection(written["section"], written["draft"]["text"]) for written in state["written"])


def sources_for(library: Library, evidence: Sequence[Evidence]) -> tuple[list[Source], list[str]]:
    """Sources whose chunk still holds the quote, in order, and a warning for each that is lost.

    Chunk ids shift when a paper is edited, so evidence is found by its chunk's hash, or else by its quote.
    """
    names = dict.fromkeys(span.chunk_id for item in evidence for span in item.spans)
    by_id = {chunk.id: chunk for chunk in library.chunks(list(names))}
    sources: list[Source] = []
    lost: list[str] = []
    for item in evidence:
        chunk = by_id.get(item.chunk_id)
        if chunk is None or text_hash(chunk.text) != item.chunk_hash:
            chunk = _relocated(library, item)
        if chunk is None:
            lost.append(f"Source changed: the text of {item.id} is no longer in {item.key}, so it is left out.")
            continue
        start = item.start if chunk.text[item.start : item.end] == item.quote else chunk.text.index(item.quote)
        moved = replace(item, chunk_id=chunk.id, start=start, end=start + len(item.quote))
        passage = passage_of(moved, chunk, by_id)
        sources.append(Source(moved, library.paper(item.key), chunk.text, chunk.category, passage))
    return sources, lost


def citable_sources(session: Session, sources: Sequence[Source]) -> tuple[list[Source], list[str]]:
    """The sources that may be cited, and a warning for each retracted paper; blocks."""
    retracted = session.retracted({source.paper.key: source.paper for source in sources}.values())
    allowed = session.settings.cite_retracted
    outcome = "read, and may be cited, as you allow" if allowed else "read, but not cited (--cite-retracted allows it)"
    warnings = [
        f"Retracted paper: {key} was {outcome}. {status.retraction_line()}" for key, status in retracted.items()
    ]
    kept = [source for source in sources if allowed or source.paper.key not in retracted]
    return kept, warnings


def passage_of(item: Evidence, chunk: Chunk, chunks: Mapping[str, Chunk]) -> tuple[PassageSentence, ...]:
    """The sentences shown for a finding: those that carry it, and the preceding one where a run of them depends on it.

    `chunk` is that of its first words; words in another chunk that has changed since are left out.
    """
    shown: list[tuple[int, PassageSentence]] = []  # each with where it begins in the paper
    for span in item.spans:
        holder = chunk if span.chunk_id == item.chunk_id else chunks.get(span.chunk_id)
        if holder is None or holder.text[span.start : span.end] != span.quote:
            continue
        units = readable_units(holder.text)
        inside = [place for place, unit in enumerate(units) if unit.start < span.end and span.start < unit.end]
        if inside and inside[0] and leans_back(units[inside[0]].text):
            inside = [inside[0] - 1, *inside]
        for place in inside:
            unit = units[place]
            sentence = PassageSentence(holder.id, unit.start, unit.end, unit.text, unit.end > span.start)
            shown.append((holder.start + unit.start, sentence))
    return tuple(sentence for _, sentence in sorted(_each_once(shown), key=lambda at: at[0]))


def _each_once(shown: Sequence[tuple[int, PassageSentence]]) -> list[tuple[int, PassageSentence]]:
    """Sentences that do not overlap in the paper, although chunks share their borders.

    Sentences that carry the finding come first, then longer ones.
    """
    kept: list[tuple[int, PassageSentence]] = []
    for begin, sentence in sorted(shown, key=lambda at: (not at[1].carries, at[1].start - at[1].end)):
        end = begin + sentence.end - sentence.start
        if not any(begin < other + item.end - item.start and other < end for other, item in kept):
            kept.append((begin, sentence))
    return kept


def _relocated(library: Library, item: Evidence) -> Chunk | None:
    try:
        chunks = library.paper_chunks(item.key)
    except InputError:
        return None
    same = [chunk for chunk in chunks if text_hash(chunk.text) == item.chunk_hash]
    holding = [chunk for chunk in chunks if item.quote in chunk.text]
    return next(iter([*same, *holding]), None)


def chunks_shown(state: RunState, session: Session) -> list[str]:
    """Ids of the chunks that a chat model was shown, each once: by the agent's reading tools, and as its reader.

    Chunks that gave no evidence are included.
    """
    wanted = [
        item
        for message in state.get("messages", [])
        if isinstance(message, ToolMessage) and message.artifact
        for item in message.artifact["chunks"]
    ]
    read = [] if "reader" in session.extractive else state.get("read_chunks", [])
    return list(dict.fromkeys([*wanted, *read]))


def load_read_chunks(library: Library, ids: Sequence[str]) -> list[tuple[Chunk, Paper]]:
    """These chunks with their papers; chunks that are gone are left out."""
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
    """The draft as a state record."""
    return {
        "text": draft.text,
        "truncated": draft.truncated,
        "quotes": [(span.evidence_id, span.start, span.end) for span in draft.quotes],
        "notes": list(draft.notes),
    }


def with_chosen_quotes(sources: Sequence[Source], draft: Draft) -> list[Source]:
    """The sources with the quotes that the writer chose, where they differ from the reader's."""
    spans = {span.evidence_id: span for span in draft.quotes}
    chosen = []
    for source in sources:
        span = spans.get(source.evidence.id)
        if span is not None:
            quote = source.text[span.start : span.end]
            source = replace(source, evidence=replace(source.evidence, quote=quote, start=span.start, end=span.end))
        chosen.append(source)
    return chosen
