"""render: turns markers into citations, and builds the references and the record of a section or an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from langgraph.runtime import Runtime

from ...documents.sandbox import in_thread
from ...drafts.finished_text import FinishedText, finish_text
from ...drafts.page_record import PageOptions, page_record, page_references, render_page
from ...plurals import counted
from ..events import progress
from ..role_inputs import chunks_shown, written_draft
from ..session import Session
from ..state import ResearchState, RunState, Update


async def render(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """The finished section or answer: no markers are left, and nothing that the library does not hold."""
    result = await render_record(state, session)
    runtime.stream_writer(progress("rendered", f"{counted(len(result['citations']), 'citation')} rendered"))
    answered = {"answered": result["answered"]} if "answered" in result else {}
    return {"text": result["text"], "result": result, **answered}


async def render_record(state: RunState, session: Session) -> dict[str, Any]:
    """The record of a section or an answer in the citation style of the settings; makes no model call."""
    final = await finished_text(state, session)
    options = page_options(session, final.written.brief.kind)
    before = cast(ResearchState, state).get("numbering", ())

    def build() -> dict[str, Any]:
        page = render_page(final, session.library, options, read=chunks_shown(state, session), before=before)
        return page_record(page, page_references(page.papers, page.shown.numbering, options.style, options.csl))

    return await in_thread(build)


async def finished_text(state: RunState, session: Session, earlier: Mapping[str, str] | None = None) -> FinishedText:
    """The latest draft without what must not reach the reader; `earlier` are a paper's previous sections by name."""
    written = await written_draft(state, session)
    keys = [paper.key for paper in await asyncio.to_thread(session.library.papers)]
    strict, extractive = session.settings.strict, "writer" in session.extractive
    return await in_thread(finish_text, written, keys, strict=strict, extractive=extractive, earlier=earlier)


def page_options(session: Session, kind: str) -> PageOptions:
    """How a text of this kind is rendered with the settings of the session."""
    settings, answer = session.settings, kind == "answer"
    return PageOptions(
        session.answer_style if answer else settings.cite_style,
        settings.csl,
        strict=settings.strict,
        quoted_only="writer" in session.extractive,
        notice=session.answer_notice if answer else session.notice,
    )
