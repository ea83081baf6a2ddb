"""Library: the papers, one paper with its text, and adding and removing papers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from ...api.ingesting import PAPER_SUFFIXES
from ...api.library_papers import (
    PaperOrder,
    afigure,
    afigures,
    afind_citing,
    alist_papers,
    apaper,
    apaper_text,
    asection_text,
    aselect_papers,
)
from ...api.library_search import Labels, asearch, year_range
from ...api.library_upkeep import alibrary_counts
from ...api.results import FoundPassage, PaperSummary
from ...documents import entry_labels
from ...errors import InputError
from ..request_models import Offset
from ..routes.paper_routes import ListLimits, get_paper
from ..routes.status_routes import doctor
from ..server_state import ServerState, StateOf
from .html import markdown, page, part

router = APIRouter(include_in_schema=False)
PageNumber = Annotated[int, Query(ge=1, le=100_000)]
Quote = Annotated[str, Query(max_length=4000)]
_PAGE: Final = 50  # papers
_PASSAGES: Final = 6
_MAX_TEXT: Final = 40_000  # characters of a paper shown at once
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
    limits: ListLimits,
    q: Annotated[str, Query(max_length=200)] = "",
    sort: Annotated[str, Query(max_length=20)] = "title",
    offset: Offset = 0,
) -> Response:
    chosen = sort if sort in SORTS else "title"
    order: PaperOrder = chosen.lstrip("-")  # type: ignore[assignment]  # all of `SORTS` are
    everything = await alist_papers(state.session)
    found, in_text = await aselect_papers(
        state.session, q.split(), order=order, descending=chosen.startswith("-"), **limits, papers=everything
    )
    query = {"q": q, "sort": chosen, **{name: str(value or "") for name, value in limits.items()}}
    context = {
        "query": query,
        "filtered": bool(q or any(limits.values())),
        "labels": label_choices(everything),
        "passages_found": await _find_passages(state, q, limits) if q and not offset else [],
        "export": urlencode({name: value for name, value in query.items() if value and name != "sort"}),
        "sorts": SORTS,
        "endings": [*PAPER_SUFFIXES, ".bib"],
        "papers": found[offset : offset + _PAGE],
        "found": len(found),
        "in_text": in_text,
        "all": len(everything),
        "passages": sum(paper["chunks"] for paper in everything),
        "services": state.session.settings.metadata_services,
        "offset": offset,
        "earlier": _address(query, offset - _PAGE) if offset else "",
        "later": _address(query, offset + _PAGE) if offset + _PAGE < len(found) else "",
        "ingests": [
            job_id for job_id, job in (await state.jobs.known()).items() if job.active and job.order.kind == "ingest"
        ],
        "here": f"{request.url.path}?{request.url.query}",
    }
    return page(request, "paper_list.html" if "x-part" in request.headers else "library.html", context)


def label_choices(papers: Iterable[PaperSummary]) -> dict[str, list[str]]:
    """What papers can be chosen by, by the names of the options; a collection stands with those above it."""
    found: dict[str, set[str]] = {name: set() for name in ("venue", "status", "kind", "tag", "collection")}
    for paper in papers:
        for name in ("venue", "status", "kind"):
            found[name].add(paper[name])
        found["tag"].update(paper["tags"])
        for path in paper["collections"]:
            found["collection"].update(accumulate(path.split("/"), "{}/{}".format))
    return {name: sorted(filter(None, values), key=str.casefold) for name, values in found.items()}


async def _find_passages(state: ServerState, words: str, limits: Mapping[str, Any]) -> list[FoundPassage]:
    """The passages nearest to what was searched for; none if nothing can be searched."""
    years = year_range(limits["from_year"], limits["to_year"])
    labels: Labels = {"kind": limits["kind"], "tag": limits["tag"], "collection": limits["collection"]}
    try:
        return await asearch(state.session, words, _PASSAGES, years=years, **labels)
    except InputError:
        return []


@router.post("/library/sample")
async def add_sample(state: StateOf) -> Response:
    """Add the sample papers to a library that has none."""
    if not (await alibrary_counts(state.session))["papers"]:
        await state.ingests.start_sample()
    return RedirectResponse("/library", 303)


@router.get("/library-check")
async def library_check(request: Request, state: StateOf) -> Response:
    return page(request, "library_check.html", {"record": await doctor(state)})


@router.get("/library/{key:path}/read")
async def read_paper(key: str, request: Request, state: StateOf, page: PageNumber = 1, quote: Quote = "") -> Response:
    """A paper in the reader, its PDF or else its text, open at a page with words marked; also for the side panel."""
    record = await get_paper(key, state)
    is_pdf = record["source"].lower().endswith(".pdf")
    text = [] if is_pdf else await apaper_text(state.session, key)
    passages = [(item, markdown(item["text"][: 4 * _MAX_TEXT])) for item in text]
    context = {"paper": record, "is_pdf": is_pdf, "passages": passages, "number": page, "quote": quote}
    return part(request, "reader.html", context)


@router.get("/library/{key:path}/figures/{number}")
async def paper_figure(key: str, number: int, request: Request, state: StateOf) -> Response:
    """One figure with its caption, for the side panel."""
    figure = await afigure(state.session, key, number)
    total = len(await afigures(state.session, key))
    return part(request, "figure.html", {"paper": await apaper(state.session, key), "figure": figure, "total": total})


@router.get("/library/{key:path}")
async def paper(
    key: str, request: Request, state: StateOf, section: Annotated[int | None, Query(ge=0, le=100_000)] = None
) -> Response:
    record = await get_paper(key, state)
    text = await asection_text(state.session, key, section, _MAX_TEXT)
    content = {
        "paper": record,
        "labels": entry_labels(record["bibtex"]),
        "text": text,
        "passages": [(passage, markdown(passage.text[: 4 * _MAX_TEXT])) for passage in text.passages],
        "services": state.session.settings.metadata_services,
        "figures": record["figures"],
        **await afind_citing(state.session, key),
    }
    return page(request, "paper.html", content)


def _address(query: dict[str, str], offset: int) -> str:
    given = {name: value for name, value in query.items() if value}
    return "/library?" + urlencode({**given, **({"offset": offset} if offset > 0 else {})})
