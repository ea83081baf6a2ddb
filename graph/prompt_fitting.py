"""Retries work with smaller prompts when a server's context turns out smaller than assumed.

Also summarizes papers and describes figures, outside graphs but with the journal and budget of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..documents import Paper
from ..documents.figures import PaperFigure
from ..errors import CiteloomError, ConfigurationError
from ..models.context_size import Room
from ..models.http.failures import EndpointLostError, EndpointRefusedError, is_refused_content
from ..tools.found_evidence import EvidenceLimits
from .session import Session

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

    from ..ingestion.describing import DescribeReport
    from ..ingestion.ingest_events import Described

T = TypeVar("T")

# Approximate tokens of a reader call besides the passages: instructions, purpose and needs.
_BESIDE_A_WINDOW: Final = "x" * 4_000


async def run_fitted(session: Session, run_id: str, work: Callable[[], Awaitable[T]]) -> T:
    """Run `work`, again whenever a server turns out to have a smaller context than known; answers are journaled."""
    while True:
        lessons = session.contexts.lessons(run_id)
        try:
            return await work()
        except (EndpointRefusedError, EndpointLostError):
            if session.contexts.lessons(run_id) == lessons:
                raise
            await session.learn_sizes(run_id)


async def summarize_fitted(session: Session, run_id: str, paper: Paper, text: str) -> str:
    """Summarize the paper with the summarizer of a run; raises the role's errors."""

    async def ask() -> str:
        return await (await session.roles_of(run_id)).summarize(paper, text)

    return await run_fitted(session, run_id, ask)


async def search_limits(session: Session, runtime: Runtime[Any], *, section: bool) -> EvidenceLimits:
    """Return the search limits of a run, with windows no larger than the reader's context.

    A section reads twice as much as a question, since it covers several questions. Without a chat model the writer
    chooses among twice as many passages.
    """
    limits = session.limits
    if "reader" in session.extractive:
        kept, of_paper = 2 * session.settings.top_k_final, 2 * session.settings.per_paper
        return replace(limits, top_k_final=kept, per_paper=of_paper)
    if section:
        limits = replace(limits, read_tokens=2 * limits.read_tokens, search_tokens=2 * limits.search_tokens)
    sizes = await session.contexts.sizes(session.run_id(runtime))
    room = Room.of(sizes["reader"], session.settings.max_output_tokens)
    call = max(1, room.left(limits.call_tokens, _BESIDE_A_WINDOW))
    return limits if call == limits.call_tokens else limits.within(call)


async def pinned_papers(session: Session) -> list[str]:
    """Return the papers pinned in the settings, which are searched for each need; raises `UnknownPaperError`."""
    for key in session.settings.pinned:
        await asyncio.to_thread(session.library.paper, key)
    return session.settings.pinned


async def describe_papers(
    session: Session,
    run: str,
    keys: Collection[str] | None = None,
    *,
    refresh: bool = False,
    on_event: Callable[[Described], None] | None = None,
) -> DescribeReport:
    """Have a vision model describe figures without a description (of all papers by default), billed to `run`.

    Raises `ConfigurationError` without a vision model, and any error of a model call; finished descriptions are kept.
    """
    from ..ingestion.describing import FigureRefusedError, describe_figures
    from ..models.chat_caller import ChatCaller
    from ..roles.chat.chat_writers import FigureDescriber

    settings = session.settings
    if not settings.describes_figures:
        raise ConfigurationError(
            "No vision model is configured.", help="Set CITELOOM_VISION_MODEL, and CITELOOM_VISION_BASE_URL if needed."
        )

    async def describe(figure: PaperFigure, image: bytes) -> str:
        try:
            return await describer.describe(figure, image)
        except CiteloomError as error:
            if is_refused_content(error):
                raise FigureRefusedError(error.message, help=error.help) from error
            raise

    def open_describer() -> FigureDescriber:
        budget, scope = session.budget(run), session.scope(run)
        caller = ChatCaller(settings, "vision", journal=session.journal, scope=scope, budget=budget)
        return FigureDescriber(caller, session.prompts, max_tokens=settings.max_output_tokens)

    with session.run(run):
        describer = await asyncio.to_thread(open_describer)
        return await describe_figures(
            session.library,
            describe,
            settings.vision_model or "",
            keys=keys,
            refresh=refresh,
            concurrency=settings.max_concurrency,
            on_event=on_event,
        )
