"""The PDF of a paper, and images of its pages with words marked: only files that the catalog names are read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from fastapi import Path as InPath
from fastapi.responses import FileResponse

from ...documents.pdf.drawing import MAX_BYTES, MAX_WORDS, draw_page_apart
from ...documents.safe_files import FileRefusedError, require_regular
from ...documents.sandbox import in_thread
from ..problems import ServerError
from ..response_models import problems
from ..server_state import ServerState, StateOf

router = APIRouter(prefix="/papers", tags=["papers"])
_HEAD: Final = 1024  # bytes in which a PDF names its format
# A browser's viewer is a page of its own, in frames; scripts in a PDF do not run in ours.
_VIEWER: Final = {
    "Content-Security-Policy": "default-src 'none'; object-src 'self'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "Cache-Control": "private, no-cache",
}
_PDF: Final = {"description": "The file.", "content": {"application/pdf": {}}}
_PNG: Final = {"description": "The image.", "content": {"image/png": {}}}


@router.get("/{key:path}/file", response_class=FileResponse, responses={200: _PDF, **problems(404)})
async def paper_file(key: str, state: StateOf) -> Response:
    """The PDF of a paper, as it was added; 404 for papers in other formats."""
    path = await asyncio.to_thread(_pdf_of, state, key)
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
    """A page of a paper's PDF as an image; what of the words is found on it is marked."""
    path = await asyncio.to_thread(_pdf_of, state, key)
    try:
        async with state.renderers:
            image = await in_thread(draw_page_apart, path, number, words=quote, width=width)
    except FileRefusedError as error:
        raise ServerError(422, f"Page {number} of {key}: {error}.") from error
    return Response(image, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})


def _pdf_of(state: ServerState, key: str) -> Path:
    """The paper's PDF; raises `UnknownPaperError`, and `ServerError` when it is none or gone."""
    path = Path(state.session.library.paper(key).source)
    if path.suffix.lower() != ".pdf":
        raise ServerError(404, f"Paper {key} is not a PDF.")
    path = state.uploads.file(str(path))
    try:
        require_regular(path, MAX_BYTES)
        with path.open("rb") as file:
            is_pdf = b"%PDF-" in file.read(_HEAD)
    except (OSError, FileRefusedError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ServerError(404, f"The PDF of {key} cannot be read ({reason}).", help="Add the paper again.") from error
    if not is_pdf:
        raise ServerError(404, f"The file of {key} is not a PDF any more.", help="Add the paper again.")
    return path
