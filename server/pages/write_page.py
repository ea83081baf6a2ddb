"""Write: a section or a paper from an experiment that is uploaded or filled in."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ...api.run_options import PAPER_ORDER, SECTIONS
from ..server_state import StateOf
from .experiment_form import FORM
from .html import page

router = APIRouter(include_in_schema=False)


@router.get("/write")
def write(request: Request, state: StateOf) -> Response:
    """The form."""
    session = state.session
    context = {
        "groups": FORM,
        "kinds": [(kind, SECTIONS[kind].purpose) for kind in PAPER_ORDER],
        "papers": len(session.library.records()),
        "notice": session.notice,
        "settings": session.settings,
    }
    return page(request, "write.html", context)
