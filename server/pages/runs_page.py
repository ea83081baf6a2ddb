"""Runs: their states and costs; and one run with its progress, or its text and findings."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from ...api import run_texts
from ...api.people import owned_runs
from ...api.run_texts import section_title
from ...api.serving import JobEntry, Session
from ...api.stored_runs import (
    RunHead,
    RunRecord,
    Spending,
    run_details,
    run_summary,
    usage_by_day,
    usage_total,
)
from ...api.text_updating import pending_updates
from ...documents.sandbox import in_thread
from ..problems import ServerError
from ..request_models import SentenceBody, Words
from ..routes.run_routes import check_edited_sentence, file_records
from ..server_state import StateOf
from .answer_view import show_text
from .ask_page import detail_page
from .html import markdown, page

router = APIRouter(include_in_schema=False)
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
_NO_TEXT: Final[Mapping[str, Any]] = {"answer": None, "asked": None, "about": "", "files": (), "figures": ()}


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
    owned = await asyncio.to_thread(owned_runs, session.home)
    spent, days = await session.journal.spending(owned), await session.journal.spending_by_day(owned)
    prices, jobs = session.settings.prices, await state.jobs.known()
    everything = await asyncio.to_thread(
        lambda: [view_run(run, session, jobs, spent) for run in session.home.runs().heads()]
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
    record = await asyncio.to_thread(run_texts.find_text, session.home, run_id)
    conversation, _, number = record.thread_id.partition(".")
    if number:
        return RedirectResponse(f"/conversations/{conversation}/turns/{number}", 303)
    spent, jobs = await session.journal.spending([record.thread_id]), await state.jobs.known()
    context = {**_NO_TEXT, "run": await asyncio.to_thread(view_run, record, session, jobs, spent)}
    if record.status == "asking":
        asked = (await run_details(record.thread_id, session.home))["waiting"]
        if asked is not None:
            shown = {**asked, "summary": _FLAG.sub("", asked["summary"])}
            context |= {"asked": shown, "about": markdown(asked["about"])}
    if record.status == "finished" and record.result is not None:
        context |= await _show_text(record, session)
    return page(request, "run_body.html" if "x-part" in request.headers else "run.html", context)


@router.get("/runs/{run_id}/sentences/{position}")
async def sentence_tools(run_id: str, position: int, request: Request, state: StateOf) -> Response:
    """What is known of a sentence and can be done with it, for the place where it is edited."""
    text = await asyncio.to_thread(run_texts.load_editable, state.session.home, run_id)
    section, current = text.section_at(position), await in_thread(run_texts.current_text, text, state.session)
    edit, checked = section.edits.get(position), None
    if edit is None or edit.checked.get("verdict"):
        found = [item for item in current.sentences if item["position"] == position]
        checked = {**run_texts.unchecked(position), **(edit.checked if edit else found[0])}
    context = {
        "text": current.shown(position),
        "checked": checked,
        "written": section.shown()[position - section.first] if edit else "",
        "rewrites": "writer" not in state.session.extractive,
    }
    return page(request, "sentence_tools.html", context)


@router.get("/runs/{run_id}/versions")
async def versions(run_id: str, request: Request, state: StateOf, other: Words = "") -> Response:
    """The user's version of a text beside the run's own, or that of another run of its title."""
    session = state.session
    text = await asyncio.to_thread(run_texts.load_editable, session.home, run_id)
    current = await in_thread(run_texts.current_text, text, session)
    heads = await asyncio.to_thread(lambda: session.home.runs().heads())
    others = [
        head
        for head in heads
        if (head.title, head.section, head.status) == (text.run.title, text.run.section, "finished")
        if head.thread_id != text.run.thread_id
    ]
    beside = text
    if other:
        found = await asyncio.to_thread(run_texts.load_editable, session.home, other)
        beside = (await in_thread(run_texts.current_text, found, session)).now
    rows = await asyncio.to_thread(list, run_texts.compare_versions(beside, current.now))
    context = {"run": text.run, "others": others, "other": other, "rows": rows, "current": current}
    return page(request, "versions.html", context)


@router.post("/runs/{run_id}/versions")
async def restore(
    run_id: str,
    state: StateOf,
    position: Annotated[int, Form(ge=0)],
    before: Annotated[str, Form(max_length=20_000)] = "",
) -> Response:
    """Return a sentence to what the run wrote, if it still has the words that were shown."""
    text = await asyncio.to_thread(run_texts.load_editable, state.session.home, run_id)
    section = text.section_at(position)
    words = section.shown()[position - section.first]
    body = SentenceBody(position=position, text=words, before=before, keep=True, check=False)
    await check_edited_sentence(run_id, body, state)
    return RedirectResponse(f"/runs/{quote(text.run.thread_id)}/versions", 303)


@router.get("/runs/{run_id}/{kinds}/{which}")
async def run_detail(run_id: str, kinds: str, which: str, request: Request, state: StateOf) -> Response:
    """What a link of the text opens: a passage with its page, a finding, or a number's source."""
    record = await asyncio.to_thread(lambda: state.session.home.runs().get(run_id))
    if record.result is None:
        raise ServerError(404, f"Run {record.thread_id} is not finished.")
    view = await show_text(record, state.session, f"/runs/{record.thread_id}")
    return await detail_page(request, state, view, kinds, which)


async def _show_text(run: RunRecord, session: Session) -> dict[str, Any]:
    """The user's version with retractions and the like since then, and its files."""
    view, address = await show_text(run, session, f"/runs/{run.thread_id}"), f"/api/v1/runs/{run.thread_id}/files"
    record = run_texts.stored(view.record)
    stem = run_texts.stem_of(record) + ".edited" * view.edited
    files = await asyncio.to_thread(run_texts.ResultFiles.of, record, session.home, stem)
    return {
        "answer": view,
        "files": file_records([files], address),
        "figures": [  # a PDF becomes a download, as browsers show none as an image
            {**figure, "href": f"{address}/{quote(figure['file'])}", "shown": not figure["file"].endswith(".pdf")}
            for figure in files.figures
        ],
    }
