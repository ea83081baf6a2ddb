"""Adds, searches, lists, shows, corrects and removes papers, with PDFs, pages and figures; and the library's pages.

Only files listed in the catalog are read, and only images encoded here are served.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, File, Form, Header, Path as InPath, Query, Request, Response, UploadFile
from fastapi.responses import FileResponse, RedirectResponse

from ...api import ingesting, library_papers, library_upkeep, paper_lookup, results, run_texts, serving
from ...api.library_search import Labels, afind_papers, asearch, year_range
from ...documents import entry_labels
from ...documents.figures import IMAGE_TYPES, image_type
from ...documents.pdf.drawing import MAX_WORDS
from ...documents.safe_files import FileRefusedError
from ...errors import InputError
from ...settings.config import RetrievalMode
from ..ingest_jobs import require_services
from ..job import Job, JobRecord
from ..job_requests import JobCall, event_stream
from ..problems import ServerError
from ..request_models import EnrichBody, EntryBody, IdentifierBody, Limit, NoteBody, Offset, PaperKey, Year
from ..response_models import PaperOnServer, Stopped, attached, event_answers, problems, reference_answers
from ..run_jobs import paper_removed
from ..server_state import ServerState, StateOf
from ..shared_calls import SessionOf, shared_tool
from ..uploaded_files import RefusedFile, file_name, refusal_reason, refuse_all, require_space, safe_name, store_file
from .html import markdown, page, part

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
    kind: Annotated[str, Query(max_length=50)] = "",
    tag: Annotated[str, Query(max_length=200)] = "",
    collection: Annotated[str, Query(max_length=500)] = "",
) -> results.FoundPassages:
    """Find passages by meaning, by words, or both."""
    settings, years = state.session.settings, year_range(from_year, to_year)
    mode = mode or settings.retrieval_mode
    labels: Labels = {"kind": kind, "tag": tag, "collection": collection}
    found = await asearch(state.session, q, limit, mode, paper, category, years, venue, settings.rerank, **labels)
    return {"passages": found}


@search_router.get("/papers", responses=problems())
async def search_papers(
    state: StateOf,
    q: Words,
    by: Annotated[Literal["summary", "text"], Query(description="Summaries and notes, or the full text.")] = "summary",
    from_year: Year = None,
    to_year: Year = None,
    page: Annotated[int, Query(ge=1, le=10**6, description="Ten papers each.")] = 1,
) -> results.FoundPapers:
    """Find papers by summary and note, or by full text."""
    return await afind_papers(state.session, q, by, from_year, to_year, page)


def paper_limits(
    from_year: Year = None,
    to_year: Year = None,
    venue: Annotated[str, Query(max_length=500, description="The journal's or book's whole name.")] = "",
    status: Annotated[str, Query(max_length=50, description="A status such as retracted; noted for any.")] = "",
    kind: Annotated[str, Query(max_length=50, description="BibTeX type, such as article or phdthesis.")] = "",
    tag: Annotated[str, Query(max_length=200, description="Tag, in Zotero or as a keyword of the entry.")] = "",
    collection: Annotated[str, Query(max_length=500, description="Zotero collection, such as Thesis/Methods.")] = "",
) -> dict[str, Any]:
    """The limits of a list of papers, as `library_papers.aselect_papers` takes them."""
    limits: dict[str, Any] = {"from_year": from_year, "to_year": to_year, "venue": venue, "status": status}
    return limits | {"kind": kind, "tag": tag, "collection": collection}


ListLimits = Annotated[dict[str, Any], Depends(paper_limits)]


@router.get("", responses=problems())
async def list_papers(
    state: StateOf,
    limits: ListLimits,
    q: Annotated[str, Query(max_length=200, description="Words of key, title, authors, venue or year.")] = "",
    sort: library_papers.PaperOrder = "key",
    descending: bool = False,
    limit: Limit = 50,
    offset: Offset = 0,
) -> results.PaperList:
    """List the papers whose metadata contain all of the words, sorted; if none do, those whose text does."""
    chosen: dict[str, Any] = {**limits, "order": sort, "descending": descending}
    found, in_text = await library_papers.aselect_papers(state.session, q.split(), **chosen)
    some = found[offset : offset + limit]
    papers: list[results.PaperSummary] = [{**paper, "source": file_name(paper["source"])} for paper in some]
    return {"papers": papers, "total": len(found), "in_text": in_text}


@router.get("/export.{form}", response_class=Response, responses={200: _EXPORT, **problems()})
async def export_papers(
    form: library_papers.ExportForm, state: StateOf, limits: ListLimits, q: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Export listed papers for a reference manager, as BibTeX, RIS or CSL-JSON."""
    found, _ = await library_papers.aselect_papers(state.session, q.split(), **limits)
    text = await library_papers.aexport_papers(state.session, [paper["key"] for paper in found], form)
    kind = {"bib": "application/x-bibtex", "ris": "application/x-research-info-systems"}.get(form, "application/json")
    return Response(text.encode("utf-8", "replace"), media_type=kind, headers=attached(f"papers.{form}"))


@router.get("/{key:path}/text", responses=problems(404))
async def get_text(key: str, state: StateOf) -> results.PaperText:
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
) -> results.PaperFigures:
    """List a paper's figures and tables with their captions. Free and fast."""
    return {"key": key, "figures": await library_papers.afigures(session, key)}


@router.get(
    "/{key:path}/figures/{number}/image",
    response_class=Response,
    responses={200: _IMAGE, 304: _UNCHANGED, **problems(404)},
)
async def figure_image(
    key: str,
    number: Annotated[int, InPath(ge=0, le=100_000, description="The figure's `number` in the list of figures.")],
    state: StateOf,
    if_none_match: Annotated[str, Header(max_length=1000)] = "",
) -> Response:
    """The image of a figure."""
    figure = await library_papers.afigure(state.session, key, number)
    headers = {**_FIGURE_CACHE, "ETag": f'"{figure.image_hash}"'}
    if figure.image_hash and f'"{figure.image_hash}"' in if_none_match:
        return Response(status_code=304, headers=headers)
    content = await asyncio.to_thread(state.session.library.figure_image, figure)
    if content is None or not image_type(content):
        reason = figure.no_image or "add the paper again"
        help = f"{reason[:1].upper()}{reason[1:]}."
        raise library_papers.MissingFigureError(f"{figure.name} of {key} has no image.", help=help)
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
    async with state.orders.lock(removed):
        await library_papers.aremove_papers(state.session, [key])
        await state.orders.end(removed)


ingest_router = APIRouter(tags=["papers"])
Files = Annotated[list[UploadFile], File(description="Papers, at most one .bib file, and notes (KEY.notes.md).")]


@ingest_router.post("/papers", status_code=202, response_class=Response, responses=reference_answers(507))
async def add_papers(
    call: JobCall, files: Files, replace: Annotated[bool, Form(description="Replace existing papers.")] = False
) -> Response:
    """Store files and ingest them in the background; refused files are named with the reason at the end."""

    state = call.state

    async def start() -> Job:
        upload_id = f"ingest-{secrets.token_hex(6)}"
        async with state.ingests.receive(upload_id, sum(file.size or 0 for file in files)):
            stored: list[str] = []
            refused: list[RefusedFile] = []
            for file in files:
                name = safe_name(file.filename or "")
                reason = refusal_reason(name, stored)
                folder = state.member.uploads.folder(upload_id)
                if not reason and not await asyncio.to_thread(store_file, file.file, folder, name):
                    reason = "is empty"
                if reason:
                    refused.append(RefusedFile(name=name or "file", reason=reason))
                else:
                    stored.append(name)
            if not stored:
                raise refuse_all("files can be added", refused)
            await asyncio.to_thread(state.member.uploads.publish, upload_id)
            order = serving.JobOrder(upload_id, "ingest", {"files": stored, "refused": refused, "replace": replace})
            return await state.ingests.start(order)

    def digest(file: UploadFile) -> str:
        file.file.seek(0)
        found = hashlib.file_digest(file.file, "sha256").hexdigest()  # type: ignore[arg-type]  # a spooled file has all it uses
        file.file.seek(0)
        return found

    content = [[file.filename, await asyncio.to_thread(digest, file)] for file in files] if call.key else []
    return await call.answer([replace, content], start, "ingests")


@ingest_router.post("/papers/by-identifier", status_code=202, response_class=Response, responses=reference_answers(507))
async def add_by_identifier(body: IdentifierBody, call: JobCall) -> Response:
    """Add papers by DOI or arXiv id in the background: metadata, entry, and the free PDF or the abstract.

    The identifiers are sent to the metadata services of the server's settings.
    """
    paper_lookup.parse_identifiers(body.identifiers)
    await asyncio.to_thread(require_space, call.state.session, {"": 1})
    return await _start_lookup(body.model_dump(), call)


@ingest_router.post("/papers/enrich", status_code=202, response_class=Response, responses=reference_answers(404))
async def enrich_papers(body: EnrichBody, call: JobCall) -> Response:
    """Look papers up in the background: DOIs, what their entries lack, retractions and other versions.

    Titles, authors, years and DOIs are sent to the metadata services of the server's settings.
    """
    for key in body.keys:
        await library_papers.apaper(call.state.session, key)
    return await _start_lookup(body.model_dump(), call)


async def _start_lookup(content: dict[str, Any], call: JobCall) -> Response:
    require_services(call.state.session)
    order = serving.JobOrder(f"ingest-{secrets.token_hex(6)}", "ingest", content)
    return await call.answer(content, lambda: call.state.ingests.start(order), "ingests")


@ingest_router.get("/ingests/{upload_id}", responses=problems(404))
async def get_ingest(upload_id: str, state: StateOf) -> JobRecord:
    """The state of an ingest, with its report once it is finished."""
    return (await _require_ingest(upload_id, state)).record()


@ingest_router.get("/ingests/{upload_id}/events", responses=event_answers(), response_class=Response)
async def ingest_events(upload_id: str, request: Request, state: StateOf) -> Response:
    """The events of an ingest since `Last-Event-ID`, until it ends."""
    return event_stream(await _require_ingest(upload_id, state), request, state.streams)


@ingest_router.post("/ingests/{upload_id}/cancel", responses=problems(404))
async def cancel_ingest(upload_id: str, state: StateOf) -> Stopped:
    """Stop an ingest: its finished papers stay, and its other files are deleted."""
    return {"id": upload_id, "stopped": await state.ingests.stop((await _require_ingest(upload_id, state)).id)}


async def _require_ingest(upload_id: str, state: ServerState) -> Job:
    job = await state.jobs.find(upload_id)
    if job is None or job.order.kind != "ingest":
        raise ServerError(404, f"There is no ingest {upload_id!r:.60}, or it ended long ago.")
    return job


pages = APIRouter(include_in_schema=False)
PageNumber = Annotated[int, Query(ge=1, le=100_000)]
Quote = Annotated[str, Query(max_length=4000)]
_PAGE: Final = 50  # papers
_PASSAGES: Final = 6
_HITS: Final = 10  # passages for each paper of a list, since some papers have many
_MAX_TEXT: Final = 40_000  # characters of a paper shown at once
SORTS: Final = {
    "title": "Title",
    "authors": "Authors",
    "-year": "Newest first",
    "year": "Oldest first",
    "key": "Key",
    "-chunks": "Longest first",
}


@pages.get("/library")
async def library(
    request: Request,
    state: StateOf,
    limits: ListLimits,
    q: Annotated[str, Query(max_length=200)] = "",
    sort: Annotated[str, Query(max_length=20)] = "title",
    offset: Offset = 0,
) -> Response:
    chosen = sort if sort in SORTS else "title"
    order: dict[str, Any] = {"order": chosen.lstrip("-"), "descending": chosen.startswith("-")}
    everything = await library_papers.alist_papers(state.session)
    given = {**limits, **order, "papers": everything}
    found, in_text = await library_papers.aselect_papers(state.session, q.split(), **given)
    query = {"q": q, "sort": chosen, **{name: str(value or "") for name, value in limits.items()}}
    context = {
        "query": query,
        "filtered": bool(q or any(limits.values())),
        "labels": label_choices(everything),
        "passages_found": await _find_passages(state, q, limits) if q and not offset else [],
        "words_found": await _find_words(state, q, found[offset : offset + _PAGE]) if in_text else {},
        "export": urlencode({name: value for name, value in query.items() if value and name != "sort"}),
        "sorts": SORTS,
        "endings": [*ingesting.PAPER_SUFFIXES, ".bib"],
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


def label_choices(papers: Iterable[results.PaperSummary]) -> dict[str, list[str]]:
    """Return the values by which papers can be filtered, by option name; a collection brings its parents."""
    found: dict[str, set[str]] = {name: set() for name in ("venue", "status", "kind", "tag", "collection")}
    for paper in papers:
        for name in ("venue", "status", "kind"):
            found[name].add(paper[name])
        found["tag"].update(paper["tags"])
        for path in paper["collections"]:
            found["collection"].update(accumulate(path.split("/"), "{}/{}".format))
    return {name: sorted(filter(None, values), key=str.casefold) for name, values in found.items()}


async def _find_passages(state: ServerState, words: str, limits: Mapping[str, Any]) -> list[results.FoundPassage]:
    """Find the passages nearest to the words; empty if the search is not possible."""
    years = year_range(limits["from_year"], limits["to_year"])
    labels: Labels = {"kind": limits["kind"], "tag": limits["tag"], "collection": limits["collection"]}
    try:
        return await asearch(state.session, words, _PASSAGES, years=years, **labels)
    except InputError:
        return []


async def _find_words(state: ServerState, words: str, papers: Sequence[results.PaperSummary]) -> dict[str, Any]:
    """Where each of these papers has the words best, by its key: page, and the sentence with most of them."""
    keys = [paper["key"] for paper in papers]
    hits = await asearch(state.session, words, _HITS * len(keys), "bm25", keys) if keys else []
    return {
        hit["key"]: {"page": hit["page"], "text": _sentence_with(hit["text"], words.split())} for hit in reversed(hits)
    }


def _sentence_with(text: str, words: Iterable[str]) -> str:
    """The sentence of a passage that has most of these words, whole ones or beginnings of words first."""
    sought = [(word.casefold(), re.compile(rf"(?<!\w){re.escape(word.casefold())}")) for word in words]

    def matches(sentence: str) -> int:
        folded = sentence.casefold()
        return sum(2 if begins.search(folded) else word in folded for word, begins in sought)

    sentences = [text[start:end] for start, end in run_texts.sentence_spans(text)]
    return max(sentences, key=matches, default=text)


@pages.post("/library/sample")
async def add_sample(state: StateOf) -> Response:
    """Add the sample papers to a library that has none."""
    if not (await library_upkeep.alibrary_counts(state.session))["papers"]:
        await state.ingests.start_sample()
    return RedirectResponse("/library", 303)


@pages.get("/library/{key:path}/read")
async def read_paper(key: str, request: Request, state: StateOf, page: PageNumber = 1, quote: Quote = "") -> Response:
    """A paper in the reader, its PDF or else its text, open at a page with words marked; also for the side panel."""
    record = await get_paper(key, state)
    is_pdf = record["source"].lower().endswith(".pdf")
    text = [] if is_pdf else await library_papers.apaper_text(state.session, key)
    passages = [(item, markdown(item["text"][: 4 * _MAX_TEXT])) for item in text]
    context = {"paper": record, "is_pdf": is_pdf, "passages": passages, "number": page, "quote": quote}
    return part(request, "reader.html", context)


@pages.get("/library/{key:path}/figures/{number}")
async def paper_figure(key: str, number: int, request: Request, state: StateOf) -> Response:
    """One figure with its caption, for the side panel."""
    figure = await library_papers.afigure(state.session, key, number)
    total = len(await library_papers.afigures(state.session, key))
    return part(
        request,
        "figure.html",
        {"paper": await library_papers.apaper(state.session, key), "figure": figure, "total": total},
    )


@pages.get("/library/{key:path}")
async def paper(
    key: str, request: Request, state: StateOf, section: Annotated[int | None, Query(ge=0, le=100_000)] = None
) -> Response:
    record = await get_paper(key, state)
    text = await library_papers.asection_text(state.session, key, section, _MAX_TEXT)
    content = {
        "paper": record,
        "labels": entry_labels(record["bibtex"]),
        "text": text,
        "passages": [(passage, markdown(passage.text[: 4 * _MAX_TEXT])) for passage in text.passages],
        "services": state.session.settings.metadata_services,
        "figures": record["figures"],
        **await library_papers.afind_citing(state.session, key),
    }
    return page(request, "paper.html", content)


def _address(query: dict[str, str], offset: int) -> str:
    given = {name: value for name, value in query.items() if value}
    return "/library?" + urlencode({**given, **({"offset": offset} if offset > 0 else {})})
