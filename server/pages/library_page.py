"""Library: the papers, one paper, and adding and removing them."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ..server_state import StateOf
from .html import page

router = APIRouter(include_in_schema=False)


@router.get("/library")
def library(request: Request, state: StateOf) -> Response:
    """All papers, searched, filtered and sorted."""
    return page(request, "library.html", {"papers": state.session.library.papers()})
