"""Questions: answered whole, as a stream of events, or in the background."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ...runs.research import ResearchRequest
from ..job_requests import JobCall
from ..request_models import ResearchBody
from ..response_models import job_answers

router = APIRouter(tags=["research"])


@router.post("/research", responses=job_answers(404), response_class=Response)
async def start_research(body: ResearchBody, call: JobCall) -> Response:
    """Answer a question from the library, or join or resume the run that already does."""
    asked = ResearchRequest(
        body.question,
        body.sources,
        body.length,
        body.from_year,
        body.to_year,
        body.venue,
        tuple(body.papers),
        single_shot=body.single_shot,
        fresh=body.fresh,
    )
    return await call.answer(body.model_dump(), lambda: call.state.runs.start_run(asked, body.limits()))
