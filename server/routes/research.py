"""Questions: answered whole, as a stream of events, or in the background."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ...runs.research import ResearchRequest
from ..job_responses import job_response
from ..request_models import ResearchBody
from ..response_models import job_answers
from ..server_state import StateOf

router = APIRouter(tags=["research"])


@router.post("/research", responses=job_answers(), response_class=Response)
async def start_research(body: ResearchBody, request: Request, state: StateOf) -> Response:
    """Answer a question from the library, or join or resume the run that already does."""
    asked = ResearchRequest(
        body.question,
        body.sources,
        body.length,
        body.min_year,
        body.max_year,
        body.venue,
        tuple(body.papers),
        single_shot=body.single_shot,
        fresh=body.fresh,
    )
    job = await state.runs.start_run(asked, body.limits())
    return await job_response(job, request, f"/api/v1/runs/{job.id}", state.streams)
