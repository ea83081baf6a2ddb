"""Describes figures with a session's vision model, using the journal, budget and rate limiter of its runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ..documents.figures import PaperFigure
from ..errors import CiteloomError, ConfigurationError
from ..ingestion.describing import DescribeReport, FigureRefusedError, describe_figures
from ..ingestion.ingest_events import Described
from ..models.http.failures import is_refused_content
from .session import Session

if TYPE_CHECKING:
    from ..roles.chat.summarizer import FigureDescriber


async def describe_papers(
    session: Session,
    run: str,
    keys: Collection[str] | None = None,
    *,
    refresh: bool = False,
    on_event: Callable[[Described], None] | None = None,
) -> DescribeReport:
    """Describe the figures of papers, or of all, that have no description yet, within the budget of `run`.

    Raises `ConfigurationError` without a vision model, and any error of a model call; finished descriptions are kept.
    """
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
        from ..models.chat_caller import ChatCaller
        from ..roles.chat.summarizer import FigureDescriber

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
