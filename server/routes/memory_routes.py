"""Routes of the author's memory, and the tool by which an agent reads it; agents cannot write it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from ...api import remembering
from ...api.results import MemoryLine, MemoryLines, MemoryProposals
from ..request_models import MemoryBody, ProposalBody
from ..response_models import problems
from ..server_state import StateOf
from ..shared_calls import SessionOf, shared_tool

router = APIRouter(prefix="/memory", tags=["memory"])
Id = Annotated[str, Path(min_length=1, max_length=40, description="Id of a line or proposal, or a prefix of it.")]


@router.get("", responses=problems())
@shared_tool("What the author wants")
async def list_memory(session: SessionOf) -> MemoryLines:
    """What the author wants of every text: terms, spelling, papers never to cite, facts. Follow it in what you write
    for the author. Free and fast."""
    return {"lines": await remembering.alist_memory(session.settings, session.home)}


@router.post("", status_code=201, responses=problems())
async def add_line(body: MemoryBody, state: StateOf) -> MemoryLine:
    """Add a line."""
    settings, home = state.session.settings, state.session.home
    return await remembering.aremember(settings, home, body.text, shared=body.shared)


@router.get("/proposals", responses=problems())
async def list_proposals(state: StateOf) -> MemoryProposals:
    """What the edits of finished texts suggest; nothing is stored until it is accepted."""
    return {"proposals": await remembering.apropose_memory(state.session.settings, state.session.home)}


@router.post("/proposals/{line_id}", responses=problems(404))
async def answer_proposal(line_id: Id, body: ProposalBody, state: StateOf) -> MemoryLines:
    """Accept a proposal, or decline it for good; returns the new line, if any."""
    line = await remembering.aanswer_proposal(
        state.session.settings, state.session.home, line_id, accept=body.accept, text=body.text, shared=body.shared
    )
    return {"lines": [] if line is None else [line]}


@router.put("/{line_id}", responses=problems(404))
async def edit_line(line_id: Id, body: MemoryBody, state: StateOf) -> MemoryLine:
    """Replace a line; it stays shared or not."""
    return await remembering.aremember(state.session.settings, state.session.home, body.text, note_id=line_id)


@router.delete("/{line_id}", status_code=204, response_class=Response, responses=problems(404))
async def delete_line(line_id: Id, state: StateOf) -> None:
    """Delete a line."""
    await remembering.aforget(state.session.settings, state.session.home, line_id)
