"""Sections and whole papers, written from an experiment."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from fastapi import APIRouter, Request, Response

from ...experiment import Experiment, SectionKind, parse_experiment
from ...runs.experiment_check import check_experiment
from ...runs.fingerprint import RunKind
from ...runs.section_request import SectionRequest
from ..experiment_body import ExperimentRoute, require_readable
from ..job_requests import JobCall
from ..request_models import WritingBody
from ..response_models import job_answers, problems
from ..server_state import StateOf
from ..text_models import ExperimentBody, ExperimentReport
from ..uploaded_plots import with_uploaded_plots

router = APIRouter(tags=["writing"], route_class=ExperimentRoute)


@router.post("/sections/{kind}", responses=job_answers(404), response_class=Response)
async def write_section(kind: SectionKind, body: WritingBody, call: JobCall) -> Response:
    """Write a section, or join or resume the run that already does."""
    return await _write(kind, body, call)


@router.post("/manuscripts", responses=job_answers(404), response_class=Response)
async def write_manuscript(body: WritingBody, call: JobCall) -> Response:
    """Write all six sections of a paper, or join or resume the run that already does."""
    return await _write("paper", body, call)


@router.post("/experiments/check", responses=problems(404))
async def check_experiment_fields(body: ExperimentBody, request: Request, state: StateOf) -> ExperimentReport:
    """What is wrong or odd in an experiment, and which fields each section still needs."""

    def with_plots(experiment: Experiment) -> Experiment:
        require_readable(request)
        return with_uploaded_plots(experiment, state.session.home, body.plot_upload)

    check = await asyncio.to_thread(check_experiment, body.experiment, with_plots)
    return ExperimentReport.model_validate({**asdict(check), "ready": check.ready})


async def _write(kind: RunKind, body: WritingBody, call: JobCall) -> Response:
    require_readable(call.request)
    parsed = await asyncio.to_thread(parse_experiment, body.experiment)
    experiment = await asyncio.to_thread(with_uploaded_plots, parsed, call.state.session.home, body.plot_upload)
    asked = SectionRequest(kind, experiment, fresh=body.fresh)
    return await call.answer(body.model_dump(), lambda: call.state.runs.start_run(asked, body.limits()))
