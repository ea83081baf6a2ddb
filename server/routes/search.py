"""Search: passages and papers for a query."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query

from ...api.library import asearch
from ...settings.config import RetrievalMode
from ...tools.paper_search import papers_by_summary, papers_by_text, year_range
from ...tools.scope import require_words
from ..request_models import PaperKey, Year
from ..response_models import FoundPapers, Passages, problems
from ..server_state import StateOf

router = APIRouter(prefix="/search", tags=["search"])
Words = Annotated[str, Query(min_length=1, max_length=4000, description="What to look for.")]


@router.get("", responses=problems(404))
async def search_passages(
    state: StateOf,
    q: Words,
    limit: Annotated[int, Query(ge=1, le=200)] = 10,
    mode: RetrievalMode | None = None,
    paper: Annotated[list[PaperKey], Query(max_length=200, description="Keys to search within.")] = [],  # noqa: B006
    category: Annotated[list[str], Query(max_length=20, description="Kinds of section.")] = [],  # noqa: B006
    from_year: Year = None,
    to_year: Year = None,
    venue: Annotated[str, Query(max_length=200)] = "",
) -> Passages:
    """Find passages by meaning, by words, or both."""
    settings = state.session.settings
    found = await asearch(
        state.session,
        q,
        limit,
        mode or settings.retrieval_mode,
        paper,
        category,
        year_range(from_year, to_year),
        venue,
        settings.rerank,
    )
    return Passages(passages=found)


@router.get("/papers", responses=problems())
async def search_papers(
    state: StateOf,
    q: Words,
    by: Annotated[Literal["summary", "text"], Query(description="Summaries and notes, or the full text.")] = "summary",
    from_year: Year = None,
    to_year: Year = None,
    page: Annotated[int, Query(ge=1, le=10**6, description="Ten papers each.")] = 1,
) -> FoundPapers:
    """Find papers by summary and note, or by full text."""
    require_words(q)
    library = state.session.library
    if by == "text":
        record = await asyncio.to_thread(papers_by_text, library, q, from_year, to_year, page)
    else:
        record = await papers_by_summary(library, q, from_year, to_year, page)
    return FoundPapers.model_validate(record)
