"""Uploads of plots, the images that an experiment names."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated

from fastapi import APIRouter, File, Form, UploadFile

from ...citations.export.figures import MOST_BYTES
from ...stores.run_register import PLOT_SET
from ..response_models import problems
from ..server_state import StateOf
from ..text_models import PlotUpload
from ..uploaded_plots import store_plots

router = APIRouter(tags=["writing"])
Images = Annotated[list[UploadFile], File(description="Images: png, jpg, svg, pdf or webp.")]
Base = Annotated[
    str, Form(max_length=30, pattern=f"^({PLOT_SET.pattern})?$", description="An earlier upload, whose images stay.")
]


@router.post("/plots", responses=problems(404, 507))
async def add_plots(state: StateOf, files: Images, base: Base = "") -> PlotUpload:
    """Store images for the plots of an experiment, which finds them by their names; the same images cost nothing.

    They are deleted with the last run that shows them, or after a day if there is none.
    """
    given = [(file.filename or "", await file.read(MOST_BYTES + 1)) for file in files]
    async with state.ingests.reserve(f"plots-{secrets.token_hex(6)}", sum(len(data) for _, data in given)):
        upload_id, names, refused = await asyncio.to_thread(store_plots, given, state.session.home, base)
    return PlotUpload.model_validate({"id": upload_id, "files": names, "refused": refused})
