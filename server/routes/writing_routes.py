"""Questions, sections and papers from an experiment with plots, and checks of a user's own text; and their pages."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, File, Form, Request, Response, UploadFile
from fastapi.routing import APIRoute

from ...api import evidence_tables, run_options, running, serving
from ...api.checking import LABELS, CheckResult, acheck_prose
from ...documents.sandbox import in_thread
from ..ingest_jobs import check_arguments
from ..job_requests import JobCall
from ..request_models import CheckBody, ExperimentBody, ResearchBody, WritingBody
from ..response_models import PlotUpload, job_answers, problems
from ..server_state import StateOf
from ..uploaded_files import store_plots, with_uploaded_plots
from .html import page

Images = Annotated[list[UploadFile], File(description="Images: png, jpg, svg, pdf or webp.")]
Base = Annotated[
    str,
    Form(
        max_length=30, pattern=f"^({running.PLOT_SET.pattern})?$", description="An earlier upload, whose images stay."
    ),
]
_LARGE: Final = 100_000  # bytes; a smaller body is parsed within milliseconds


class ExperimentRoute(APIRoute):
    """A route with an `experiment` in its body; large bodies are shortened in a separate process before parsing.

    Large ones arrive without their unusable fields, or empty: routes must call `_require_readable` and use `_left_out`.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler with the shortened body."""
        answer = super().get_route_handler()

        async def answer_shortened(request: Request) -> Response:
            body = await request.body()
            if len(body) > _LARGE:
                try:
                    shortened, request.state.left_out = await in_thread(running.shorten_body, body)
                    request._body = shortened  # FastAPI parses this instead
                except running.ExperimentError as error:
                    request.state.refused_experiment = error
                    request._body = b'{"experiment": {}}'
            return await answer(request)

        return answer_shortened


questions = APIRouter()
router = APIRouter(tags=["writing"], route_class=ExperimentRoute)


@questions.post("/research", tags=["research"], responses=job_answers(404), response_class=Response)
async def start_research(body: ResearchBody, call: JobCall) -> Response:
    """Answer a question from the library, or join or resume the run that already does."""
    request = await asyncio.to_thread(body.request, body.question, call.state.session)
    return await call.answer(asdict(body), lambda: call.state.runs.start_run(request, body))


@router.post("/sections/{kind}", responses=job_answers(404), response_class=Response)
async def write_section(kind: run_options.SectionKind, body: WritingBody, call: JobCall) -> Response:
    """Write a section, or join or resume the run that already does."""
    return await _write(kind, body, call)


@router.post("/manuscripts", responses=job_answers(404), response_class=Response)
async def write_manuscript(body: WritingBody, call: JobCall) -> Response:
    """Write all six sections of a paper, or join or resume the run that already does."""
    return await _write("paper", body, call)


@router.post("/experiments/check", responses=problems(404))
async def check_experiment_fields(body: ExperimentBody, request: Request, state: StateOf) -> running.ExperimentReport:
    """What is wrong or odd in an experiment, and which fields each section still needs."""

    def with_plots(experiment: running.Experiment) -> running.Experiment:
        _require_readable(request)
        return with_uploaded_plots(experiment, state.session.home, body.plot_upload)

    return await asyncio.to_thread(running.check_experiment, body.experiment, with_plots, _left_out(request))


@questions.post("/checks", tags=["checks"], responses=problems(404))
async def check(body: CheckBody, call: JobCall) -> CheckResult:
    """Check each sentence of a text by the papers that it cites; the same request again costs only what changed.

    Repeating an interrupted request continues it without losing what was judged. With `Prefer: respond-async`, which
    long texts need, the check is a job: 202 with the location of its result, as for an ingest.
    """
    content, state = body.model_dump(mode="json"), call.state
    given = await check_arguments(content)
    if "respond-async" in call.request.headers.get("prefer", ""):
        order = serving.JobOrder(f"ingest-{secrets.token_hex(6)}", "ingest", {"check": content})
        reference = await call.answer(content, lambda: state.ingests.start(order), "ingests")
        return cast("CheckResult", reference)  # FastAPI sends a response as it is
    return await acheck_prose(state.session, **given)


@router.post("/plots", responses=problems(404, 507))
async def add_plots(state: StateOf, files: Images, base: Base = "") -> PlotUpload:
    """Store images for the plots of an experiment, which refers to them by file name.

    Uploading the same images again is free. They are deleted with the last run that shows them, or after a day if no
    run does.
    """
    given = [(file.filename or "", await file.read(running.MOST_BYTES + 1)) for file in files]
    async with state.ingests.reserve(f"plots-{secrets.token_hex(6)}", sum(len(data) for _, data in given)):
        upload_id, names, refused = await asyncio.to_thread(store_plots, given, state.session.home, base)
    return {"id": upload_id, "files": names, "refused": refused}


async def _write(kind: run_options.RunKind, body: WritingBody, call: JobCall) -> Response:
    _require_readable(call.request)
    parse = partial(running.parse_experiment, left_out=_left_out(call.request))
    parsed = await asyncio.to_thread(parse, body.experiment, *running.required_kinds(kind))
    experiment = await asyncio.to_thread(with_uploaded_plots, parsed, call.state.session.home, body.plot_upload)
    request = running.SectionRequest(kind, experiment, fresh=body.fresh)
    asked = await running.with_tables(request, call.state.session, body)
    return await call.answer(asdict(body), lambda: call.state.runs.start_run(asked, body))


def _require_readable(request: Request) -> None:
    """Raise `ExperimentError` if this request's experiment was refused before parsing."""
    error: running.ExperimentError | None = getattr(request.state, "refused_experiment", None)
    if error is not None:
        raise error


def _left_out(request: Request) -> list[running.UnusableField]:
    """The problems of fields left out of this request's experiment before parsing."""
    problems: list[running.UnusableField] = getattr(request.state, "left_out", [])
    return problems


pages = APIRouter(include_in_schema=False)


@pages.get("/write")
async def write(request: Request, state: StateOf) -> Response:
    session = state.session
    context = {
        "weighing": [kind for kind in run_options.PAPER_ORDER if run_options.SECTIONS[kind].weighs_studies],
        "kinds": [(kind, run_options.SECTIONS[kind].purpose) for kind in run_options.PAPER_ORDER],
        "papers": len(await asyncio.to_thread(session.library.records)),
        "tables": await evidence_tables.alist_tables(session),
        "notice": session.notice(),
        "settings": session.settings,
    }
    return page(request, "write.html", context)


@pages.get("/check")
def check_form(request: Request, state: StateOf) -> Response:
    session = state.session
    context = {"papers": len(session.library.records()), "judged": "judge" not in session.extractive}
    return page(request, "check_text.html", context)


@pages.post("/check")
async def checked(body: CheckBody, request: Request, call: JobCall) -> Response:
    """The sentences of a text with remarks, beside the passages that they cite, for the form."""
    return page(request, "checked_text.html", {"record": await check(body, call), "labels": LABELS})
