"""The route that checks a text of the user's own against the library."""

from __future__ import annotations

import asyncio
import secrets
from typing import cast

from fastapi import APIRouter

from ...api.checking import CheckResult, acheck_prose
from ...api.serving import JobOrder
from ...api.writing import parse_experiment
from ..job_requests import JobCall
from ..request_models import CheckBody
from ..response_models import problems

router = APIRouter(tags=["checks"])


@router.post("/checks", responses=problems(404))
async def check(body: CheckBody, call: JobCall) -> CheckResult:
    """Check each sentence of a text by the papers that it cites; the same request again costs only what changed.

    A request that is cut off keeps what was judged: the same one goes on. With `Prefer: respond-async`, which long
    texts need, the check is a job: 202 with its place, at which the result is found, as for an ingest.
    """
    session = call.state.session
    if body.experiment is not None:
        await asyncio.to_thread(parse_experiment, body.experiment)
    if "respond-async" in call.request.headers.get("prefer", ""):
        content = body.model_dump(mode="json")
        order = JobOrder(f"ingest-{secrets.token_hex(6)}", "ingest", {"check": content})
        reference = await call.refer(content, lambda: call.state.ingests.start(order))
        return cast("CheckResult", reference)  # FastAPI sends a response as it is
    return await acheck_prose(session, **body.arguments())
