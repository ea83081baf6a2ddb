"""Routes to search, list, show, correct and remove papers, with PDFs, pages and figures.

Only files listed in the catalog are read, and only images encoded here are served.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Header, Path as InPath, Query, Response
from fastapi.responses import FileResponse

from ...api import library_papers
from ...api.library_search import afind_papers, asearch, year_range
from ...api.results import FoundPapers, FoundPassages, PaperFigures, PaperList, PaperSummary, PaperText
from ...documents.figures import IMAGE_TYPES, image_type
from ...documents.pdf.drawing import MAX_WORDS
from ...documents.safe_files import FileRefusedError
from ...settings.config import RetrievalMode
from ..problems import ServerError
from ..request_models import EntryBody, Limit, NoteBody, Offset, PaperKey, Year
from ..response_models import PaperOnServer, attached, problems
from ..run_jobs import paper_removed
from ..server_state import StateOf
from ..shared_calls import SessionOf, shared_tool
from ..uploaded_files import file_name

search_router = APIRouter(prefix="/search", tags=["search"])
router = APIRouter(prefix="/papers", tags=["papers"])
Words = Annotated[str, Query(min_length=1, max_length=4000, description="What to look for.")]
# Browsers show PDFs in their own viewer, framed; PDF scripts do not run in our page.
_VIEWER: Final = {
    "Content-Security-Policy": "default-src 'none'; object-src 'self'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "Cache-Control": "private, no-cache",
}
# The image at an address may change when the paper is ingested again.
_FIGURE_CACHE: Final = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
_PDF: Final = {"description": "The file.", "content": {"application/pdf": {}}}
_EXPORT: Final = {
    "description": "The papers.",
    "content": {"application/x-bibtex": {}, "application/x-research-info-systems": {}, "application/json": {}},
}
_PNG: Final = {"description": "The image.", "content": {"image/png": {}}}
_IMAGE: Final = {"description": "The image.", "content": {kind: {} for kind in sorted(IMAGE_TYPES.values())}}
_UNCHANGED: Final = {"description": "The image is that of `If-None-Match`."}


@search_router.get("", responses=problems(404))
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
) -> FoundPassages:
    """Find passages by meaning, by words, or both."""
    settings, years = state.session.settings, year_range(from_year, to_year)
    mode = mode or settings.retrieval_mode
    found = await asearch(state.session, q, limit, mode, paper, category, years, venue, settings.rerank)
    return {"passages": found}


@search_router.get("/papers", responses=problems())
async def search_papers(
    state: StateOf,
    q: Words,
    by: Annotated[Literal["summary", "text"], Query(description="Summaries and notes, or the full text.")] = "summary",
    from_year: Year = None,
    to_year: Year = None,
    page: Annotated[int, Query(ge=1, le=10**6, description="Ten papers each.")] = 1,
) -> FoundPapers:
    """Find papers by summary and note, or by full text."""
    return await afind_papers(state.session, q, by, from_year, to_year, page)


@router.get("", responses=problems())
async def list_papers(
    state: StateOf,
    q: Annotated[str, Query(max_length=200, description="Words of key, title, authors, venue or year.")] = "",
    sort: library_papers.PaperOrder = "key",
    descending: bool = False,
    from_year: Year = None,
    to_year: Year = None,
    venue: Annotated[str, Query(max_length=500, description="The journal's or book's whole name.")] = "",
    status: Annotated[str, Query(max_length=50, description="Such as retracted; noted for any.")] = "",
    limit: Limit = 50,
    offset: Offset = 0,
) -> PaperList:
    """List the papers whose metadata contain all of the words, sorted; if there are none, those whose text does."""
    found, in_text = await library_papers.aselect_papers(
        state.session,
        q.split(),
        order=sort,
        descending=descending,
        from_year=from_year,
        to_year=to_year,
        venue=venue,
        status=status,
    )
    papers: list[PaperSummary] = [
        {**paper, "source": file_name(paper["source"])} for paper in found[offset : offset + limit]
    ]
    return {"papers": papers, "total": len(found), "in_text": in_text}


@router.get("/export.{form}", response_class=Response, responses={200: _EXPORT, **problems()})
async def export_papers(
    form: library_papers.ExportForm,
    state: StateOf,
    q: Annotated[str, Query(max_length=200)] = "",
    from_year: Year = None,
    to_year: Year = None,
    venue: Annotated[str, Query(max_length=500)] = "",
    status: Annotated[str, Query(max_length=50)] = "",
) -> Response:
    """The papers of such a list for a reference manager, as BibTeX, RIS or CSL-JSON."""
    limits: dict[str, Any] = {"from_year": from_year, "to_year": to_year, "venue": venue, "status": status}
    found, _ = await library_papers.aselect_papers(state.session, q.split(), **limits)
    text = await library_papers.aexport_papers(state.session, [paper["key"] for paper in found], form)
    kind = {"bib": "application/x-bibtex", "ris": "application/x-research-info-systems"}.get(form, "application/json")
    return Response(text.encode("utf-8", "replace"), media_type=kind, headers=attached(f"papers.{form}"))


@router.get("/{key:path}/text", responses=problems(404))
async def get_text(key: str, state: StateOf) -> PaperText:
    """The searchable text of a paper, by section and page."""
    return {"key": key, "text": await library_papers.apaper_text(state.session, key)}


@router.get("/{key:path}/file", response_class=FileResponse, responses={200: _PDF, **problems(404)})
async def paper_file(key: str, state: StateOf) -> Response:
    """The PDF of a paper, as it was added; 404 for papers in other formats."""
    path = await library_papers.apaper_pdf(state.session, key)
    return FileResponse(
        path, media_type="application/pdf", filename=path.name, content_disposition_type="inline", headers=_VIEWER
    )


@router.get("/{key:path}/pages/{number}.png", response_class=Response, responses={200: _PNG, **problems(404)})
async def page_image(
    key: str,
    number: Annotated[int, InPath(ge=1, le=100_000)],
    state: StateOf,
    quote: Annotated[str, Query(max_length=MAX_WORDS, description="Words to mark on the page.")] = "",
    width: Annotated[int, Query(ge=200, le=2000, description="Width in pixels.")] = 1000,
) -> Response:
    """A page of a paper's PDF as an image, with the given words marked where they are found."""
    try:
        async with state.renderers:
            image = await library_papers.apage_image(state.session, key, number, words=quote, width=width)
    except FileRefusedError as error:
        raise ServerError(422, f"Page {number} of {key}: {error}.") from error
    return Response(image, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})


@router.get("/{key:path}/figures", responses=problems(404))
@shared_tool("Figures of a paper")
async def list_figures(
    session: SessionOf,
    key: Annotated[str, InPath(min_length=1, max_length=500, description="Citation key of the paper.")],
) -> PaperFigures:
    """List a paper's figures and tables with their captions. Free and fast."""
    return {"key": key, "figures": await library_papers.afigures(session, key)}


@router.get(
    "/{key:path}/figures/{number}/image",
    response_class=Response,
    responses={200: _IMAGE, 304: _UNCHANGED, **problems(404)},
)
async def figure_image(
    key: str,
    number: Annotated[int, InPath(ge=0, le=100_000, description="Its `number` in the list of figures.")],
    state: StateOf,
    if_none_match: Annotated[str, Header(max_length=1000)] = "",
) -> Response:
    """The image of a figure."""
    figure = await library_papers.afigure(state.session, key, number)
    headers = {**_FIGURE_CACHE, "ETag": f'"{figure.image_hash}"'}
    if figure.image_hash and f'"{figure.image_hash}"' in if_none_match:
        return Response(status_code=304, headers=headers)
    content = await library_papers.afigure_image(state.session, figure)
    if content is None or not image_type(content):
        reason = figure.no_image or "add the paper again"
        raise library_papers.MissingFigureError(
            f"{figure.name} of {key} has no image.", help=f"{reason[:1].upper()}{reason[1:]}."
        )
    return Response(content, media_type=image_type(content), headers=headers)


@router.get("/{key:path}", responses=problems(404))
async def get_paper(key: str, state: StateOf) -> PaperOnServer:
    """A paper with its metadata, summary, note and section tree."""
    record = await library_papers.apaper_details(state.session, key)
    added_here = state.member.uploads.place_of(record["source"]) is not None
    return {**record, "source": file_name(record["source"]), "added_here": added_here}


@router.put("/{key:path}/entry", responses=problems(404))
async def put_entry(key: str, body: EntryBody, state: StateOf) -> PaperOnServer:
    """Update a paper's metadata from a BibTeX entry; fields that the entry lacks are kept."""
    await library_papers.acorrect_entry(state.session, key, body.bibtex)
    return await get_paper(key, state)


@router.put("/{key:path}/note", status_code=204, responses=problems(404))
async def put_note(key: str, body: NoteBody, state: StateOf) -> None:
    """Save the user's note on a paper, in the library and as `KEY.notes.md`; 422 if it was changed meanwhile."""
    await library_papers.asave_note(state.session, key, body.text, before=body.before)


@router.delete("/{key:path}", status_code=204, responses=problems(404, 409))
async def delete_paper(key: str, state: StateOf) -> None:
    """Remove a paper from the library, and its file if it was uploaded; any other file stays where it is."""
    removed = paper_removed(key)
    await state.orders.find(lambda: state.session.library.paper(key), removed)
    async with state.orders.on(removed):
        await library_papers.aremove_papers(state.session, [key])
        await state.orders.end(removed)
