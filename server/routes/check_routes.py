"""The route that checks a text of the user's own against the library."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from ...api.checking import CheckResult, acheck_prose
from ...api.writing import parse_experiment
from ..request_models import CheckBody
from ..response_models import problems
from ..server_state import StateOf

router = APIRouter(tags=["checks"])


@router.post("/checks", responses=problems(404))
async def check(body: CheckBody, state: StateOf) -> CheckResult:
    """Check each sentence of a text by the papers that it cites; the same request again costs only what changed.

    A request that is cut off keeps what was judged: the same one goes on.
    """
    experiment = None if body.experiment is None else await asyncio.to_thread(parse_experiment, body.experiment)
    return await acheck_prose(
        state.session,
        body.text,
        format=body.format,
        bib=body.bib,
        experiment=experiment,
        only=body.only,
        max_calls=body.max_calls,
        fresh=body.fresh,
        look_up=body.look_up,
    )
