"""Figures and tables of a paper, and their images: PNG and JPEG that were encoded here, nothing else."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Header, Response
from fastapi import Path as InPath

from ...documents.figures import IMAGE_TYPES, PaperFigure, image_type
from ...stores.library import Library
from ...tools.paper_records import load_figure_records
from ..problems import ServerError
from ..response_models import PaperFigures, problems
from ..server_state import StateOf

router = APIRouter(prefix="/papers", tags=["papers"])
FigureNumber = Annotated[int, InPath(ge=0, le=100_000, description="Its `number` in the list of figures.")]
_IMAGE: Final = {"description": "The image.", "content": {kind: {} for kind in sorted(IMAGE_TYPES.values())}}
_SAME: Final = {"description": "The image is that of `If-None-Match`."}
# An address keeps its image only until the paper is ingested again.
_CACHED: Final = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}


@router.get("/{key:path}/figures", responses=problems(404))
async def list_figures(key: str, state: StateOf) -> PaperFigures:
    """The figures and tables of a paper in reading order, with captions, and descriptions marked as their model's."""
    figures = await asyncio.to_thread(load_figure_records, state.session.library, key)
    return PaperFigures.model_validate({"key": key, "figures": figures})


@router.get(
    "/{key:path}/figures/{number}/image",
    response_class=Response,
    responses={200: _IMAGE, 304: _SAME, **problems(404)},
)
async def figure_image(
    key: str,
    number: FigureNumber,
    state: StateOf,
    if_none_match: Annotated[str, Header(max_length=1000)] = "",
) -> Response:
    """The image of a figure."""
    figure = await asyncio.to_thread(figure_of, state.session.library, key, number)
    headers = {**_CACHED, "ETag": f'"{figure.image_hash}"'}
    if figure.image_hash and f'"{figure.image_hash}"' in if_none_match:
        return Response(status_code=304, headers=headers)
    content = await asyncio.to_thread(state.session.library.figure_image, figure)
    if content is None or not image_type(content):
        reason = figure.no_image or "add the paper again"
        raise ServerError(404, f"{figure.name} of {key} has no image.", help=f"{reason[:1].upper()}{reason[1:]}.")
    return Response(content, media_type=image_type(content), headers=headers)


def figure_of(library: Library, key: str, number: int) -> PaperFigure:
    """A figure of a paper by its number; raises `UnknownPaperError` and `ServerError`. Blocks."""
    figures = library.figures(key)
    found = next((figure for figure in figures if figure.number == number), None)
    if found is None:
        raise ServerError(404, f"{key} has no figure {number}.", help="The paper may have changed: list them again.")
    return found
