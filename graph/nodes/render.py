"""render: turns markers into citations, and builds the references and the record of a section or an answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from langgraph.runtime import Runtime

from ...plurals import counted
from ..events import progress
from ..finished_text import finished_text
from ..page_record import layout_page, page_record, references_of
from ..role_inputs import chunks_shown
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
    before = cast(ResearchState, state).get("numbering", ())
    page = await layout_page(
        await finished_text(state, session), session, read=chunks_shown(state, session), before=before
    )
    references = await references_of(page.papers, page.shown.numbering, page.style, session)
    return await asyncio.to_thread(page_record, page, references, session)
