"""render, begin, store_section and assemble: turn drafts into the record of a section, an answer or a paper."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from ...documents import split_chunk_id
from ...documents.sandbox import in_thread
from ...drafts.finished_text import FinishedText, finish_text
from ...drafts.page_record import PageOptions, RenderedPage, page_record, paper_record, render_page
from ...drafts.written_draft import (
    QuestionSearch,
    WrittenDraft,
    draft_from,
    relocate_verdicts,
    verdicts_from,
)
from ...evidence_tables.stored_tables import table_lines
from ...experiment import SECTION_KINDS, SectionKind, parse_experiment
from ...models.journal.records import spent_since
from ...plurals import counted
from ...section_kinds import PAPER_ORDER, WRITING_ORDER
from ..input_check import require_given
from ..role_inputs import brief_of, chunks_shown, visible_evidence
from ..run_events import progress
from ..session import Session
from ..state import (
    PaperInput,
    ResearchState,
    RunState,
    SectionState,
    Update,
    allowed_evidence,
    given_tables,
    needs_in_vain,
    own_queries,
)
from .ask import begin_steering

_OF_A_SECTION: Final = ("section", "draft", "findings", "verdicts", "warnings", "offered", "needs")


async def render(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Finish the section or answer, without markers and citations of works outside the library."""
    result = await render_record(state, session)
    runtime.stream_writer(progress("rendered", f"{counted(len(result['citations']), 'citation')} rendered"))
    answered = {"answered": result["answered"]} if "answered" in result else {}
    return {"text": result["text"], "result": result, **answered}


async def render_record(state: RunState, session: Session) -> dict[str, Any]:
    """Build the record of a section or answer in the citation style of the settings; makes no model call."""
    final = await finish_draft(state, session)
    options = page_options(session, final.written.brief.kind)
    before = cast(ResearchState, state).get("numbering", ())

    def build() -> dict[str, Any]:
        page = render_page(final, session.library, options, read=chunks_shown(state, session), before=before)
        return page_record(page)

    return add_steering(await in_thread(build), state)


async def finish_draft(state: RunState, session: Session, earlier: Mapping[str, str] | None = None) -> FinishedText:
    """Clean the latest draft for the reader; `earlier` are a paper's previous sections by name."""
    brief, lost = await brief_of(state, session)
    draft = draft_from(state["draft"])
    sources = brief.citable
    search = None
    if "question" in state:
        given = cast(ResearchState, state)
        read = {split_chunk_id(name)[0] for name in state.get("read_chunks", [])}
        limited = bool(given.get("papers"))
        search = QuestionSearch(given["route"], given.get("shortlist", []), limited, len(read))
    there = {source.evidence.id for source in sources}
    cells = [record for record in visible_evidence(state) if record["id"] in there]
    written = WrittenDraft(
        brief,
        draft,
        sources,
        relocate_verdicts(verdicts_from(state.get("verdicts", [])), sources),
        evidence=visible_evidence(state),
        queries=own_queries(state),
        unmet=needs_in_vain(state),
        warnings=state.get("warnings", []),
        lost=lost,
        search=search,
        tables=[table_lines(table, cells) for table in given_tables(state) if table["shown"]],
    )
    keys = [paper.key for paper in await asyncio.to_thread(session.library.papers)]
    strict, extractive = session.settings.strict, "writer" in session.extractive
    return await in_thread(finish_text, written, keys, strict=strict, extractive=extractive, earlier=earlier)


def page_options(session: Session, kind: str) -> PageOptions:
    """Return the rendering options for a text of this kind under the session's settings."""
    settings, answer = session.settings, kind == "answer"
    return PageOptions(
        session.answer_style if answer else settings.cite_style,
        settings.csl,
        strict=settings.strict,
        quoted_only="writer" in session.extractive,
        notice=session.notice(answer=answer),
    )


async def begin(state: SectionState, runtime: Runtime[Any], session: Session) -> Update:
    """Check the input for all six sections and reset the state, so that a thread can be used for another paper.

    Raises `ExperimentError` for a field of the wrong type or a missing field that a section requires.
    """
    require_given(state, "experiment", PaperInput)
    await asyncio.to_thread(parse_experiment, state["experiment"], *SECTION_KINDS)
    return {
        **begin_steering(state, session),
        "section": WRITING_ORDER[0],
        "written": [],
        "evidence": Overwrite([]),
        "queries": Overwrite([]),
        "text": "",
        "result": {},
    }


async def store_section(state: SectionState, runtime: Runtime[Any], session: Session) -> Update:
    """Store the finished section and move on to the next."""
    kind = state["section"]
    written = {name: cast(Any, state)[name] for name in _OF_A_SECTION}
    written |= {"read": chunks_shown(state, session), "spent": await session.usage(session.run_id(runtime))}
    done = [*state["written"], written]
    runtime.stream_writer(progress("kept", f"{kind} is written", done=len(done), total=len(WRITING_ORDER)))
    return {"written": done, "section": WRITING_ORDER[min(len(done), len(WRITING_ORDER) - 1)]}


def to_next_or_assemble(state: SectionState) -> Literal["default_queries", "assemble"]:
    """Go to the next section if there is one, otherwise to `assemble`."""
    return "default_queries" if len(state["written"]) < len(WRITING_ORDER) else "assemble"


async def assemble(state: SectionState, runtime: Runtime[Any], session: Session) -> Update:
    """Assemble the finished paper: one text, one reference list."""
    result = await render_paper_record(state, session)
    runtime.stream_writer(progress("rendered", f"{counted(len(result['citations']), 'citation')} rendered"))
    return {"text": result["text"], "result": result}


async def render_paper_record(state: SectionState, session: Session) -> dict[str, Any]:
    """Build the paper's record in the style of the settings, numbered in the paper's order; makes no model call."""
    finished: dict[SectionKind, FinishedText] = {}
    for written in state["written"]:
        earlier: dict[str, str] = {kind: final.text for kind, final in finished.items()}
        # Restore the state at the end of the section.
        then = {**state, **{name: written[name] for name in _OF_A_SECTION}, "written": []}
        finished[written["section"]] = await finish_draft(cast(SectionState, then), session, earlier)
    read = {written["section"]: written["read"] for written in state["written"]}
    # Each section's cost is the paper's cost at its end minus the cost before it.
    totals = [written["spent"] for written in state["written"]]
    spent = dict(zip(finished, map(spent_since, [{}, *totals], totals), strict=True))

    def build() -> dict[str, Any]:
        pages: list[RenderedPage] = []
        for kind in PAPER_ORDER:
            before = pages[-1].shown.numbering if pages else ()
            options = page_options(session, kind)
            pages.append(render_page(finished[kind], session.library, options, read=read[kind], before=before))
        title = finished["abstract"].written.brief.experiment.paper_concept.title
        usage = [spent[kind] for kind in PAPER_ORDER]
        return paper_record(pages, usage, allowed_evidence(state), title, session.notice())

    return add_steering(await in_thread(build), state)


def add_steering(record: dict[str, Any], state: RunState) -> dict[str, Any]:
    """Add people's answers to the run's questions to the record, if any."""
    return {**record, "steering": state["steering"]} if state.get("steering") else record
