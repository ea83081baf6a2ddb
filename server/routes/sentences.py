"""Sentences of finished runs: listed with their findings, checked after an edit, and kept as the user's version."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from ...runs.sentence_check import check_sentence, keep_edit, load_editable, sentence_records, withdraw_edit
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


@router.post("/runs/{run_id}/sentences", responses=problems(404, 502, 503))
async def check_edited_sentence(run_id: str, body: SentenceBody, state: StateOf) -> CheckedSentence:
    """Check an edited sentence again: citations, numbers and wording, and by the judge what it cites.

    Nothing of the run changes. With `keep` the edit is stored beside it, as a part of the user's version; without
    `check` it is stored as it is.
    """
    session = state.session.with_settings(**body.limits())
    home = state.session.home
    check = await check_sentence(run_id, body.position, body.text, session) if body.check else None
    if body.keep:
        await asyncio.to_thread(keep_edit, home, run_id, body.position, body.text, check)
    found = {} if check is None else check.as_dict()
    return CheckedSentence.model_validate({"position": body.position, "kept": body.keep, **found})


@router.delete("/runs/{run_id}/sentences/{position}", status_code=204, responses=problems(404))
async def withdraw_edited_sentence(run_id: str, position: int, state: StateOf) -> None:
    """Return to the sentence of the run."""
    await asyncio.to_thread(withdraw_edit, state.session.home, run_id, position)
