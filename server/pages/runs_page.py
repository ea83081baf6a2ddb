"""Runs: their states and costs; and one run with its progress, or its text and findings."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response

from ...api import run_texts
from ...api.run_texts import section_title
from ...api.serving import JobEntry, Session
from ...api.stored_runs import (
    RunHead,
    RunRecord,
    Spending,
    find_run,
    run_details,
    run_heads,
    run_summary,
    usage_by_day,
    usage_total,
)
from ...api.text_updating import pending_updates
from ...errors import InputError
from ..problems import ServerError
from ..request_models import SentenceBody
from ..routes.run_routes import check_edited_sentence, file_records
from ..server_state import StateOf
from .answer_view import answer_view
from .ask_page import detail_page
from .html import markdown, page

router = APIRouter(include_in_schema=False)
Words = Annotated[str, Query(max_length=200)]
_ON_A_PAGE: Final = 30
_DAYS: Final = 31  # listed
Shown = Literal["all", "working", "stopped", "finished"]
_SHOWN: Final[dict[Shown, frozenset[str]]] = {
    "working": frozenset({"waiting", "working", "running"}),
    "stopped": frozenset({"asking", "paused", "failed", "killed"}),
    "finished": frozenset({"finished"}),
}
_STATES: Final[Mapping[str, tuple[str, str]]] = {
    "waiting": ("Waiting", "active"),
    "working": ("Working", "active"),
    "running": ("Working elsewhere", "active"),
    "asking": ("Waiting for you", "doubt"),
    "paused": ("Paused", "doubt"),
    "failed": ("Failed", "doubt"),
    "killed": ("Interrupted", "doubt"),
    "finished": ("Finished", "good"),
}
_REASONS: Final[Mapping[str, str]] = {
    "interrupted": "It was stopped. What was paid for is saved.",
    "": "It ended before it was finished. What was paid for is saved.",
}
_FLAG: Final = re.compile(r" \(--(max-calls|max-tokens|max-cost)\)")
_LEAST: Final = 0.01  # for any limit
_NO_TEXT: Final[Mapping[str, Any]] = {
    **{"answer": None, "asked": None, "about": ""},
    **dict.fromkeys(("files", "figures", "sentences", "edited_files"), ()),
    **dict.fromkeys(("not_editable", "own_version"), ""),
}


def view_run(
    run: RunRecord | RunHead, session: Session, jobs: Mapping[str, JobEntry], spent: Iterable[Spending]
) -> dict[str, Any]:
    """What a page shows of a run; `state` is its job's if active, `spent` its spending per model. Blocks."""
    summary = run_summary(run, session.home)
    job = jobs.get(run.thread_id)
    state = job.state if job is not None and job.active else summary["status"]
    detail = "" if state == "finished" else summary["detail"]
    usage = usage_total([row for row in spent if row.run == run.thread_id], session.settings.prices)
    used = {
        "max-calls": usage["llm_calls"],
        "max-tokens": usage["input_tokens"] + usage["output_tokens"],
        "max-cost": usage["cost"] or 0,
    }
    reached = _FLAG.search(detail)  # the limit it hit: suggests that it may spend as much again
    label, look = _STATES[state]
    return {
        **summary,
        "id": run.thread_id,
        "kind": run.section,
        "kind_name": {"research": "Answer", "paper": "Whole paper"}.get(run.section, section_title(run.section)),
        "state": state,
        "label": label,
        "look": look,
        "active": state in ("waiting", "working"),
        "finished": state == "finished",
        "resumable": state in ("paused", "failed", "killed"),
        "reason": _FLAG.sub("", _REASONS.get(detail, detail)),
        "suggested": {reached[1].replace("-", "_"): max(2 * used[reached[1]], _LEAST)} if reached else {},
        "usage": usage,
    }


@router.get("/runs")
async def runs(
    request: Request,
    state: StateOf,
    show: Shown = "all",
    q: Words = "",
    start: Annotated[int, Query(ge=0, le=10**6)] = 0,
) -> Response:
    """The runs with these words in their titles by experiment, the latest first, and the usage by day."""
    session = state.session
    spent, days = await session.journal.spending(), await session.journal.spending_by_day()
    prices, jobs = session.settings.prices, await state.jobs.known()
    everything = await asyncio.to_thread(
        lambda: [view_run(run, session, jobs, spent) for run in run_heads(session.home)]
    )
    words = q.casefold().split()
    everything = [view for view in everything if all(word in view["title"].casefold() for word in words)]
    chosen = [view for view in everything if show == "all" or view["state"] in _SHOWN[show]]
    groups: dict[str, list[dict[str, Any]]] = {}
    for view in chosen[start : start + _ON_A_PAGE]:
        groups.setdefault(view["id"] if view["kind"] == "research" else view["title"], []).append(view)
    counts = {name: sum(view["state"] in states for view in everything) for name, states in _SHOWN.items()}
    context = {
        "updates": await asyncio.to_thread(pending_updates, session),
        "groups": list(groups.values()),
        "q": q,
        "show": show,
        "counts": {"all": len(everything), **counts},
        "start": start,
        "following": start + _ON_A_PAGE if start + _ON_A_PAGE < len(chosen) else None,
        "preceding": max(0, start - _ON_A_PAGE) if start else None,
        "days": usage_by_day(days, prices)[-_DAYS:][::-1],
        "total": usage_total(spent, prices),
    }
    return page(request, "run_list.html" if "x-part" in request.headers else "runs.html", context)


@router.get("/runs/{run_id}")
async def run(run_id: str, request: Request, state: StateOf) -> Response:
    session = state.session
    record = await asyncio.to_thread(find_run, session.home, run_id)
    spent, jobs = await session.journal.spending([record.thread_id]), await state.jobs.known()
    context = {**_NO_TEXT, "run": await asyncio.to_thread(view_run, record, session, jobs, spent)}
    if record.status == "asking":
        asked = (await run_details(record.thread_id, session.home))["waiting"]
        context |= {"asked": asked, "about": markdown(asked["about"]) if asked else ""}
    if record.status == "finished" and record.result is not None:
        known = run_texts.stored(record.result)
        context |= await asyncio.to_thread(_load_text, record.thread_id, known, session)
        if context["edited_files"]:
            text = await asyncio.to_thread(run_texts.load_editable, session.home, record.thread_id)
            context["own_version"] = markdown((await run_texts.edited_record(text, session))["text"])
    return page(request, "run_body.html" if "x-part" in request.headers else "run.html", context)


@router.get("/runs/{run_id}/{kinds}/{which}")
async def run_detail(run_id: str, kinds: str, which: str, request: Request, state: StateOf) -> Response:
    """What a link of the text opens: a passage with its page, a finding, or a number's source."""
    record = await asyncio.to_thread(find_run, state.session.home, run_id)
    if record.result is None:
        raise ServerError(404, f"Run {record.thread_id} is not finished.")
    known = await asyncio.to_thread(run_texts.with_notices, run_texts.stored(record.result), state.session)
    view = await asyncio.to_thread(answer_view, known, f"/runs/{record.thread_id}")
    return await detail_page(request, state, view, kinds, which)


@router.post("/runs/{run_id}/sentence-check")
async def sentence_check(run_id: str, body: SentenceBody, request: Request, state: StateOf) -> Response:
    """The check of an edited sentence, for the form in which it is edited."""
    checked = await check_edited_sentence(run_id, body, state)
    return page(request, "sentence_check.html", {"checked": checked})


def _load_text(run_id: str, record: run_texts.StoredRecord, session: Session) -> dict[str, Any]:
    """The text with retractions and the like since then, the files, and the sentences or why they cannot be edited."""
    address, home = f"/api/v1/runs/{run_id}/files", session.home
    files = run_texts.ResultFiles.of(record, home)
    shown = {
        "answer": answer_view(run_texts.with_notices(record, session), f"/runs/{run_id}"),
        "files": file_records([files], address),
        "figures": [  # a PDF becomes a download, as browsers show none as an image
            {**figure, "href": f"{address}/{quote(figure['file'])}", "shown": not figure["file"].endswith(".pdf")}
            for figure in files.figures
        ],
    }
    try:
        text = run_texts.load_editable(home, run_id)
    except InputError as error:
        return {**shown, "not_editable": error.message}
    edited = [run_texts.ResultFiles.of(record, home, f"{run_texts.stem_of(record)}.edited")] if text.edits else []
    return {**shown, "sentences": run_texts.sentence_records(text), "edited_files": file_records(edited, address)}
