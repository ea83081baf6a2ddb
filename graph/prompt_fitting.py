"""Retries with smaller prompts when a server's context turns out small; answered calls come from the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..documents import Paper
from ..models.context_size import Room
from ..models.http.failures import EndpointLostError, EndpointRefusedError
from ..tools.found_evidence import EvidenceLimits
from .session import Session

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

T = TypeVar("T")

# Approximate tokens of a reader call besides the passages: instructions, purpose and needs.
_BESIDE_A_WINDOW: Final = "x" * 4_000


async def fitted(session: Session, run_id: str, work: Callable[[], Awaitable[T]]) -> T:
    """Run `work`, again whenever a server turns out to have a smaller context than was known."""
    while True:
        lessons = session.contexts.lessons(run_id)
        try:
            return await work()
        except (EndpointRefusedError, EndpointLostError):
            if session.contexts.lessons(run_id) == lessons:
                raise
            await session.learn_sizes(run_id)


async def summarized(session: Session, run_id: str, paper: Paper, text: str) -> str:
    """Summarize the paper with the summarizer of a run; raises the role's errors."""

    async def ask() -> str:
        return await (await session.roles_of(run_id)).summarizer.summarize(paper, text)

    return await fitted(session, run_id, ask)


async def search_limits(session: Session, runtime: Runtime[Any], *, section: bool) -> EvidenceLimits:
    """The search limits of a run, with windows no larger than the reader's server holds.

    A section reads twice as much as a question, since it covers several questions. Without a chat model the writer
    chooses among twice as many passages, each listed once.
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
    """The papers that the settings pin, searched for each need whatever else is found; raises `UnknownPaperError`."""
    for key in session.settings.pinned:
        await asyncio.to_thread(session.library.paper, key)
    return session.settings.pinned
