"""Sections and whole papers, written from an experiment."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from ...experiment import SectionKind, parse_experiment
from ...runs.fingerprint import RunKind
from ...runs.section_request import SectionRequest
from ..job_requests import JobCall
from ..request_models import WritingBody
from ..response_models import job_answers
from ..uploaded_plots import with_uploaded_plots

router = APIRouter(tags=["writing"])


@router.post("/sections/{kind}", responses=job_answers(404), response_class=Response)
async def write_section(kind: SectionKind, body: WritingBody, call: JobCall) -> Response:
    """Write a section, or join or resume the run that already does."""
    return await _write(kind, body, call)


@router.post("/manuscripts", responses=job_answers(404), response_class=Response)
async def write_manuscript(body: WritingBody, call: JobCall) -> Response:
    """Write all six sections of a paper, or join or resume the run that already does."""
    return await _write("paper", body, call)


async def _write(kind: RunKind, body: WritingBody, call: JobCall) -> Response:
    parsed = await asyncio.to_thread(parse_experiment, body.experiment)
    experiment = await asyncio.to_thread(with_uploaded_plots, parsed, call.state.session.home, body.plot_upload)
    asked = SectionRequest(kind, experiment, fresh=body.fresh)
    return await call.answer(body.model_dump(), lambda: call.state.runs.start_run(asked, body.limits()))
