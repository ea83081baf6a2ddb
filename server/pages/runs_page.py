"""Runs: their states and costs; and one run with its progress, or its text and findings."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup

from ...api import run_texts
from ...api.homes import Home
from ...api.result_views import section_title
from ...api.serving import JobEntry, Session
from ...api.spending import Spending, usage_by_day, usage_total
from ...api.stored_runs import RunHead, RunRecord, find_run, run_heads, run_summary
from ...errors import InputError
from ...settings.config import Price
from ..problems import ServerError
from ..routes.run_routes import file_records
from ..server_state import ServerState, StateOf
from .answer_view import answer_view
from .ask_page import detail_page
from .html import markdown, page

router = APIRouter(include_in_schema=False)
_ON_A_PAGE: Final = 30
_DAYS: Final = 31  # listed
Shown = Literal["all", "working", "stopped", "finished"]
_SHOWN: Final[dict[Shown, frozenset[str]]] = {
    "working": frozenset({"waiting", "working", "running"}),
    "stopped": frozenset({"paused", "failed", "killed"}),
    "finished": frozenset({"finished"}),
}
_STATES: Final[Mapping[str, tuple[str, str]]] = {
    "waiting": ("Waiting", "active"),
    "working": ("Working", "active"),
    "running": ("Working elsewhere", "active"),
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


@dataclass(frozen=True, slots=True)
class ShownRun:
    """One run; `state` is its job's if active, else the register's."""

    id: str
    kind: str
    title: str
    state: str
    detail: str
    fresh: bool
    started_at: float
    updated_at: float
    usage: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The state in words."""
        return _STATES[self.state][0]

    @property
    def look(self) -> str:
        """CSS class of the state's chip."""
        return _STATES[self.state][1]

    @property
    def kind_name(self) -> str:
        """What is written: a section, a paper or an answer."""
        return {"research": "Answer", "paper": "Whole paper"}.get(self.kind, section_title(self.kind))

    @property
    def active(self) -> bool:
        """True while it waits or works in a server."""
        return self.state in ("waiting", "working")

    @property
    def finished(self) -> bool:
        """True if finished."""
        return self.state == "finished"

    @property
    def resumable(self) -> bool:
        """True if stopped before its end."""
        return self.state in ("paused", "failed", "killed")

    @property
    def reason(self) -> str:
        """Why it stopped."""
        return _FLAG.sub("", _REASONS.get(self.detail, self.detail))

    @property
    def suggested(self) -> dict[str, float]:
        """A higher value for the limit it hit: it may spend as much again."""
        reached = _FLAG.search(self.detail)
        spent = {
            "max-calls": self.usage["llm_calls"],
            "max-tokens": self.usage["input_tokens"] + self.usage["output_tokens"],
            "max-cost": self.usage["cost"] or 0,
        }
        return {reached[1].replace("-", "_"): max(2 * spent[reached[1]], _LEAST)} if reached else {}


def view_run(
    run: RunRecord | RunHead,
    home: Home,
    jobs: Mapping[str, JobEntry],
    spent: Iterable[Spending],
    prices: Mapping[str, Price],
) -> ShownRun:
    """The view of a registered run; `spent` is its spending per model. Blocks."""
    summary = run_summary(run, home)
    job = jobs.get(run.thread_id)
    state = job.state if job is not None and job.active else summary["status"]
    usage = usage_total([row for row in spent if row.run == run.thread_id], prices)
    return ShownRun(
        id=run.thread_id,
        kind=run.section,
        title=run.title,
        state=state,
        detail=summary["detail"] if state != "finished" else "",
        fresh=run.fresh,
        started_at=run.started_at,
        updated_at=run.updated_at,
        usage=usage,
    )


@router.get("/runs")
async def runs(
    request: Request, state: StateOf, show: Shown = "all", start: Annotated[int, Query(ge=0, le=10**6)] = 0
) -> Response:
    """All runs, the latest first, and the usage by day."""
    session = state.session
    spent, days = await session.journal.spending(), await session.journal.spending_by_day()
    prices = session.settings.prices

    jobs = await state.jobs.known()

    def views() -> list[ShownRun]:
        return [view_run(run, session.home, jobs, spent, prices) for run in run_heads(session.home)]

    everything = await asyncio.to_thread(views)
    chosen = [view for view in everything if show == "all" or view.state in _SHOWN[show]]
    counts = {name: sum(view.state in states for view in everything) for name, states in _SHOWN.items()}
    context = {
        "runs": chosen[start : start + _ON_A_PAGE],
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
    """One run: its steps if active, why it stopped, or its text."""
    record = await asyncio.to_thread(find_run, state.session.home, run_id)
    context = {"run": await _view(record, state), **await asyncio.to_thread(_load_text, record, state.session)}
    context |= await asyncio.to_thread(_load_sentences, record, state)
    context["own_version"] = await _render_user_version(record, state) if context["edited_files"] else ""
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


async def _view(record: RunRecord, state: ServerState) -> ShownRun:
    session = state.session
    spent = await session.journal.spending([record.thread_id])
    return await asyncio.to_thread(
        view_run, record, session.home, await state.jobs.known(), spent, session.settings.prices
    )


def _load_text(record: RunRecord, session: Session) -> dict[str, Any]:
    """A finished run's text and files, with retractions and the like since then."""
    if record.status != "finished" or record.result is None:
        return {"answer": None, "files": [], "figures": []}
    base = f"/runs/{record.thread_id}"
    files = run_texts.ResultFiles.of(run_texts.stored(record.result), session.home)
    address = f"/api/v1{base}/files"
    return {
        "answer": answer_view(run_texts.with_notices(run_texts.stored(record.result), session), base),
        "files": file_records([files], address),
        "figures": [_view_figure(figure, address) for figure in files.figures],
    }


def _view_figure(figure: Mapping[str, Any], address: str) -> dict[str, Any]:
    """A figure with its address; a PDF becomes a download, as browsers show none as an image."""
    file = figure["file"]
    return {**figure, "href": f"{address}/{quote(file)}", "shown": not file.endswith(".pdf")}


async def _render_user_version(record: RunRecord, state: ServerState) -> Markup:
    """The user's version as one text."""
    text = await asyncio.to_thread(run_texts.load_editable, state.session.home, record.thread_id)
    return markdown((await run_texts.edited_record(text, state.session))["text"])


def _load_sentences(record: RunRecord, state: ServerState) -> dict[str, Any]:
    """The sentences with findings and edits, or why they cannot be edited."""
    if record.status != "finished":
        return {"sentences": [], "not_editable": "", "edited_files": []}
    try:
        text = run_texts.load_editable(state.session.home, record.thread_id)
    except InputError as error:
        return {"sentences": [], "not_editable": error.message, "edited_files": []}
    known, home = run_texts.stored(record.result or {}), state.session.home
    edited = [run_texts.ResultFiles.of(known, home, f"{run_texts.stem_of(known)}.edited")] if text.edits else []
    files = file_records(edited, f"/api/v1/runs/{record.thread_id}/files")
    return {"sentences": run_texts.sentence_records(text), "not_editable": "", "edited_files": files}
