"""Passages of different papers that disagree on a claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph.session import Session
from ..runs.contradiction_search import ContradictionRequest, find_contradictions
from .arguments import at_least_one, one_or_more, require_writable, requires_open
from .blocking import blocking

__all__ = ["acontradictions", "contradictions"]


@requires_open
async def acontradictions(
    session: Session,
    topic: str = "",
    *,
    papers: Sequence[str] | str = (),
    pairs: int = 20,
    on_notice: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Find passages of different papers that disagree; returns the JSON of `contradictions --json`.

    Args:
        session: an open library.
        topic: what to compare papers on; their abstracts and conclusions if omitted.
        papers: keys to compare, all if omitted.
        pairs: pairs of passages to judge at most, one model call each.
        on_notice: called with a line on the work that is ahead.

    Raises `ConfigurationError` when the judge works without a chat model, `InputError` for an unknown key or one alone,
    and `PausedError`; repeat the call to resume.
    """
    at_least_one("pairs", pairs)
    require_writable(session)
    request = ContradictionRequest(topic.strip(), one_or_more(papers), pairs)
    return await find_contradictions(request, session, on_notice=on_notice)


contradictions = requires_open(blocking(acontradictions))
