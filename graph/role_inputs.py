"""Builds role inputs from graph state: evidence with its texts, fetched from the library by id."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage, ToolMessage

from ..documents import Evidence
from ..drafts.written_draft import sources_for
from ..experiment import parse_experiment
from ..plurals import counted
from ..roles.protocols import AnswerBrief, Brief, EarlierSection, SectionBrief, Source
from ..settings.config import Depth
from ..stores.library import Library
from ..text.wordings import count_measures
from ..tools.found_evidence import MEASURED_WEIGHT, STRONG
from ..tools.paper_search import year_range
from ..tools.scope import Scope
from .session import Session
from .state import ResearchState, RunState, SectionState, allowed_evidence, own_coverage, own_queries

SECTION_LENGTH: Final[Mapping[Depth, int]] = {"brief": 250, "standard": 500, "thorough": 900}  # words
_FEW: Final = 2  # findings of a need that are shown even when they are weak
_SPECIFIC: Final = 0.8  # at or above this score, a finding meets a part of its need
_BEYOND: Final = 1.5  # factor on the usual number of findings per need, for specific ones
_BROAD: Final = 2  # the same, for a survey


async def brief_of(state: RunState, session: Session) -> tuple[Brief, list[str]]:
    """Make the brief for the current state, and warnings on retracted papers and lost evidence.

    Evidence from a retracted paper is left out unless the settings let it be cited.
    """

    def make() -> tuple[Brief, list[str]]:
        evidence = [Evidence.from_dict(record) for record in worth_showing(visible_evidence(state), state, session)]
        sources, gone = sources_for(session.library, evidence)
        banned = session.preferences.banned
        sources = [item for item in sources if item.paper.key not in banned]
        retracted = session.retracted_papers({source.paper.key: source.paper for source in sources}.values())
        allowed = session.settings.cite_retracted
        how = "and may be cited, as you allow" if allowed else "but not cited (--cite-retracted allows it)"
        said = [f"Retracted paper: {key} was read, {how}. {it.retraction_line()}" for key, it in retracted.items()]
        sources = [source for source in sources if allowed or source.paper.key not in retracted]
        lost = [warning for warning in (*gone, *said) if warning not in state.get("warnings", [])]
        return _make_brief(state, sources, session), lost

    return await asyncio.to_thread(make)


def _make_brief(state: RunState, sources: Sequence[Source], session: Session) -> Brief:
    """Make the brief for a section or a question; for a question, evidence of earlier turns is kept separate."""
    settings = session.settings
    papers = session.library.papers()
    years = sorted(paper.year for paper in papers if paper.year)
    span = f" of {years[0]} to {years[-1]}" if years and years[0] != years[-1] else ""
    both: dict[str, Any] = {
        "queries": tuple(record["query"] for record in own_queries(state)),
        "searches_left": max(0, settings.max_search_iterations - state.get("searches_used", 0)),
        "depth": settings.depth,
        "needs": tuple(own_coverage(state)),
        "preferences": session.preferences.notes,
        "library": f"{counted(len(papers), 'paper')}{span}, {counted(session.library.chunk_count(), 'passage')}",
    }
    if "question" not in state:
        section = cast(SectionState, state)
        earlier = [EarlierSection(one["section"], one["draft"]["text"]) for one in section.get("written", ())]
        return SectionBrief(
            kind=section["section"],
            experiment=parse_experiment(section["experiment"]),
            sources=tuple(sources),
            words=settings.section_words or SECTION_LENGTH[settings.depth],
            earlier=tuple(earlier) if "written" in state else None,
            **both,
        )
    asked = cast(ResearchState, state)
    fresh = _of_this_question(asked)
    return AnswerBrief(
        question=asked["question"],
        sources=tuple(source for source in sources if source.evidence.id in fresh),
        words=asked.get("words") or settings.answer_words or 0,
        inventory=asked["route"]["kind"] == "inventory",
        survey=asked["route"]["kind"] == "survey",
        tabled=bool(asked.get("tables")),
        answerable=is_answerable(state, session),
        most_papers=asked.get("sources") or settings.answer_sources,
        recalled=tuple(source for source in sources if source.evidence.id not in fresh),
        turns=tuple(asked.get("turns", ())),
        feedback=asked.get("feedback", ""),
        **both,
    )


def is_answerable(state: RunState, session: Session) -> bool:
    """Whether some evidence is relevant enough to answer from, not merely from the same field. Blocks.

    If the question names a paper, all evidence kept from it counts. A chat model may answer from earlier citations, and
    declines if they say nothing about the question.
    """
    given = cast(ResearchState, state)
    if given.get("recalled") and "writer" not in session.extractive:
        return True
    named = given["route"]["papers"] if given["route"]["track"] == "one_paper" else ()
    ids = _of_this_question(given)
    least = session.settings.answer_threshold
    useful = 0.0 if "writer" in session.extractive else session.settings.score_threshold
    good = {
        record["key"]
        for record in allowed_evidence(state)
        if record["id"] in ids and record["llm_score"] >= (useful if record["key"] in named else least)
    }
    if not good or session.settings.cite_retracted:
        return bool(good)
    records = session.library.records()
    return bool(good - session.retracted_papers(records[key].paper for key in good if key in records).keys())


def _of_this_question(state: ResearchState) -> set[str]:
    """Return ids of the evidence found for the question; a revised answer also keeps its earlier evidence."""
    fresh = {identifier for record in state.get("queries", []) for identifier in record["evidence_ids"]}
    return fresh | {record["id"] for record in state.get("recalled", [])} if state.get("feedback") else fresh


def limits_of(state: RunState, library: Library) -> Scope:
    """Return the user's scope; raises `InputError` for unknown keys or venue, or years in the wrong order. Blocks."""
    given = cast(ResearchState, state)
    years = year_range(given.get("min_year"), given.get("max_year"))
    return Scope.within(library, given.get("papers", []), (), years, given.get("venue", ""))


def visible_evidence(state: RunState) -> list[dict[str, Any]]:
    """Return the run's evidence; in a paper, what the section's searches found and earlier sections offer."""
    evidence = allowed_evidence(state)
    if "written" not in state:
        return evidence
    offered = cast(SectionState, state).get("offered", ())
    ids = {*offered, *(found for query in own_queries(state) for found in query["evidence_ids"])}
    return [record for record in evidence if record["id"] in ids]


def worth_showing(records: Sequence[dict[str, Any]], state: RunState, session: Session) -> list[dict[str, Any]]:
    """Select the evidence that planner and writer see: each need's best strong findings, up to the configured number.

    Up to half as many more are shown if they are specific, and twice as many of both for a survey. Weak findings are
    shown only for a need with few strong ones, and near misses only if there are no others. Cells of tables, pinned
    evidence, and evidence that a conversation recalls or earlier sections offer are always kept. Without a chat model
    as reader, all evidence is shown.
    """
    if "reader" in session.extractive:
        return list(records)
    useful = [record for record in records if record["llm_score"] >= session.settings.score_threshold]
    if not useful:
        return list(records)
    recalled = {record["id"] for record in cast(ResearchState, state).get("recalled", [])}

    def worth(record: Mapping[str, Any]) -> float:
        """The reader's score, plus a little for an effect, a group size and a test."""
        return float(record["llm_score"]) + MEASURED_WEIGHT * count_measures(record["summary"])

    shown = {*recalled, *cast(SectionState, state).get("offered", ())}
    shown.update(record["id"] for record in records if Evidence.from_dict(record).chosen)
    shown.update(name for query in own_queries(state) if query["origin"] == "table" for name in query["evidence_ids"])
    survey = cast(ResearchState, state).get("route", {}).get("kind") == "survey"
    usual = session.settings.top_k_final * (_BROAD if survey else 1)
    for need in dict.fromkeys(record["need"] for record in useful):
        serving = sorted((item for item in useful if item["need"] == need), key=worth, reverse=True)
        strong = sum(item["llm_score"] >= STRONG for item in serving)
        shown.update(item["id"] for item in serving[: min(usual, max(strong, _FEW))])
        specific = [item["id"] for item in serving if item["llm_score"] >= _SPECIFIC]
        shown.update(specific[: int(_BEYOND * usual)])
    return [record for record in records if record["id"] in shown]


def chunks_of(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the ids of the chunks in the answers of tools."""
    artifacts = (message.artifact for message in messages if isinstance(message, ToolMessage) and message.artifact)
    return [name for artifact in artifacts for name in artifact["chunks"]]


def chunks_shown(state: RunState, session: Session) -> list[str]:
    """Return the ids of the chunks that a chat model was shown, by tools or as reader, each once."""
    wanted = chunks_of(state.get("messages", []))
    read = [] if "reader" in session.extractive else state.get("read_chunks", [])
    return list(dict.fromkeys([*wanted, *read]))
