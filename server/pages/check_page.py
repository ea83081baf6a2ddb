"""Check: a text of the user's own, sentence by sentence beside the passages of the papers that it cites."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ..server_state import StateOf
from .html import page

router = APIRouter(include_in_schema=False)


@router.get("/check")
def check(request: Request, state: StateOf) -> Response:
    """The form; the script sends it to the API and shows the sentences."""
    session = state.session
    context = {"papers": len(session.library.records()), "judged": "judge" not in session.extractive}
    return page(request, "check_text.html", context)
