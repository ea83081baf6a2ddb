"""Library: the papers, one paper with its text, and adding and removing papers."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from ...ingestion.reading import ENDINGS
from ...stores.backends import backend_of
from ..problems import ServerError
from ..request_models import Offset, Year
from ..routes.paper_figures import figure_of
from ..routes.papers import Order, get_paper, list_papers
from ..routes.status import doctor
from ..server_state import ServerState, StateOf
from .html import page
from .paper_text import shown_sections

router = APIRouter(include_in_schema=False)
_PAGE: Final = 50  # papers
SORTS: Final = {
    "title": "Title",
    "authors": "Authors",
    "-year": "Newest first",
    "year": "Oldest first",
    "key": "Key",
    "-chunks": "Longest first",
}


@router.get("/library")
async def library(
    request: Request,
    state: StateOf,
    q: Annotated[str, Query(max_length=200)] = "",
    sort: Annotated[str, Query(max_length=20)] = "title",
    from_year: Annotated[str, Query(max_length=4)] = "",
    to_year: Annotated[str, Query(max_length=4)] = "",
    offset: Offset = 0,
) -> Response:
    """All papers, searched, filtered and sorted."""
    chosen = sort if sort in SORTS else "title"
    order: Order = chosen.lstrip("-")  # type: ignore[assignment]  # all of `SORTS` are
    years = (_year(from_year), _year(to_year))
    found = await list_papers(state, q, order, chosen.startswith("-"), *years, _PAGE, offset)
    query = {"q": q, "sort": chosen, "from_year": from_year, "to_year": to_year}
    context = {
        "query": query,
        "filtered": bool(q or from_year or to_year),
        "sorts": SORTS,
        "endings": [*ENDINGS, ".bib"],
        "papers": found.papers,
        "found": found.total,
        "in_text": found.in_text,
        "all": len(state.session.library.records()),
        "passages": state.session.library.chunk_count(),
        "services": state.session.settings.metadata_services,
        "offset": offset,
        "earlier": _address(query, offset - _PAGE) if offset else "",
        "later": _address(query, offset + _PAGE) if offset + _PAGE < found.total else "",
        "ingests": [
            job_id for job_id, job in (await state.jobs.known()).items() if job.active and job.order.kind == "ingest"
        ],
        "here": f"{request.url.path}?{request.url.query}",
    }
    return page(request, "library.html", context)


@router.get("/library-check")
async def library_check(request: Request, state: StateOf) -> Response:
    """What `doctor` finds, as a part of the page."""
    return page(request, "library_check.html", {"record": await doctor(state)})


@router.get("/library/{key:path}/pages/{number}")
async def paper_page(key: str, number: int, request: Request, state: StateOf) -> Response:
    """One page of a PDF, for the side panel."""
    paper = await asyncio.to_thread(state.session.library.paper, key)
    if not 1 <= number <= (paper.pages or 0):
        raise ServerError(404, f"{key} has no page {number}.")
    alone = "x-part" not in request.headers
    context = {"paper": paper, "number": number, "total": paper.pages, "part": "paper_page.html"}
    return page(request, "part_alone.html" if alone else "paper_page.html", context)


@router.get("/library/{key:path}/figures/{number}")
async def paper_figure(key: str, number: int, request: Request, state: StateOf) -> Response:
    """One figure with its caption, for the side panel."""
    library = state.session.library
    figure = await asyncio.to_thread(figure_of, library, key, number)
    total = len(await asyncio.to_thread(library.figures, key))
    context = {"paper": await asyncio.to_thread(library.paper, key), "figure": figure, "total": total}
    alone = "x-part" not in request.headers
    return page(request, "part_alone.html" if alone else "figure.html", {**context, "part": "figure.html"})


@router.get("/library/{key:path}")
async def paper(
    key: str, request: Request, state: StateOf, section: Annotated[int | None, Query(ge=0, le=100_000)] = None
) -> Response:
    """One paper: its data, section tree, text and note, and where it was cited."""
    record = (await get_paper(key, state)).model_dump()
    shown = await asyncio.to_thread(shown_sections, state.session.library, key, section)
    cited = await asyncio.to_thread(_cited, state, key)
    services = state.session.settings.metadata_services
    figures = await asyncio.to_thread(state.session.library.figures, key)
    content = {"paper": record, "text": shown, "services": services, "figures": figures, **cited}
    return page(request, "paper.html", content)


def _cited(state: ServerState, key: str) -> dict[str, Any]:
    backend = backend_of(state.session.home)
    return {"turns": backend.conversations().citing(key), "runs": backend.runs().citing(key)}


def _year(given: str) -> Year:
    return int(given) if given.isascii() and given.isdigit() else None


def _address(query: dict[str, str], offset: int) -> str:
    given = {name: value for name, value in query.items() if value}
    return "/library?" + urlencode({**given, **({"offset": offset} if offset > 0 else {})})
