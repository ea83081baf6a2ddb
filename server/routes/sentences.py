"""Sentences of finished runs: listed with their findings, checked after an edit, and kept as the user's version."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from ...runs.sentence_check import check_sentence, keep_edit, load_editable, sentence_records, withdraw_edit
from ..orders import conflicts, edit_withdrawn, run_deleted
from ..response_models import problems
from ..server_state import StateOf
from ..text_models import CheckedSentence, SentenceBody, SentenceList

router = APIRouter(tags=["writing"])


@router.get("/runs/{run_id}/sentences", responses=problems(404))
async def list_sentences(run_id: str, state: StateOf) -> SentenceList:
    """Every sentence of a finished section or paper, with its findings and the user's edit of it."""
    text = await asyncio.to_thread(load_editable, state.session.home, run_id)
    records = await asyncio.to_thread(sentence_records, text)
    return SentenceList.model_validate({"thread_id": text.run.thread_id, "sentences": records})


@router.post("/runs/{run_id}/sentences", responses=problems(404, 409, 502, 503))
async def check_edited_sentence(run_id: str, body: SentenceBody, state: StateOf) -> CheckedSentence:
    """Check an edited sentence again: citations, numbers and wording, and by the judge what it cites.

    Nothing of the run changes. With `keep` the edit is stored beside it, as a part of the user's version; without
    `check` it is stored as it is.
    """
    session = state.session.with_settings(**body.limits())
    run = await state.runs.find_run(run_id)
    with conflicts(run_deleted(run.thread_id)):
        check = await check_sentence(run.thread_id, body.position, body.text, session) if body.check else None
    if body.keep:
        async with state.runs.order_on(run):
            await asyncio.to_thread(keep_edit, state.session.home, run.thread_id, body.position, body.text, check)
    found = {} if check is None else check.as_dict()
    return CheckedSentence.model_validate({"position": body.position, "kept": body.keep, **found})


@router.delete("/runs/{run_id}/sentences/{position}", status_code=204, responses=problems(404, 409))
async def withdraw_edited_sentence(run_id: str, position: int, state: StateOf) -> None:
    """Return to the sentence of the run."""
    run, home = await state.runs.find_run(run_id), state.session.home
    withdrawn = edit_withdrawn(run.thread_id, position)
    async with state.runs.order_on(run):
        await state.orders.find(lambda: withdraw_edit(home, run.thread_id, position), withdrawn)
        await state.orders.end(withdrawn)
        await state.orders.end(edit_withdrawn(run.thread_id))
