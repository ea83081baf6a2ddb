"""Write: a section or paper from an experiment, uploaded or entered in a form. Check: the user's own text."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response

from ...api.checking import LABELS
from ...api.evidence_tables import alist_tables
from ...api.run_options import PAPER_ORDER, SECTIONS
from ..job_requests import JobCall
from ..request_models import CheckBody
from ..routes import writing_routes
from ..server_state import StateOf
from .html import page

router = APIRouter(include_in_schema=False)


@router.get("/write")
async def write(request: Request, state: StateOf) -> Response:
    session = state.session
    context = {
        "weighing": [kind for kind in PAPER_ORDER if SECTIONS[kind].weighs_studies],
        "kinds": [(kind, SECTIONS[kind].purpose) for kind in PAPER_ORDER],
        "papers": len(await asyncio.to_thread(session.library.records)),
        "tables": await alist_tables(session),
        "notice": session.notice(),
        "settings": session.settings,
    }
    return page(request, "write.html", context)


@router.get("/check")
def check(request: Request, state: StateOf) -> Response:
    session = state.session
    context = {"papers": len(session.library.records()), "judged": "judge" not in session.extractive}
    return page(request, "check_text.html", context)


@router.post("/check")
async def checked(body: CheckBody, request: Request, call: JobCall) -> Response:
    """The sentences of a text with remarks, beside the passages that they cite, for the form."""
    return page(request, "checked_text.html", {"record": await writing_routes.check(body, call), "labels": LABELS})
