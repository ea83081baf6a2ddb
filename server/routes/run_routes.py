"""Endpoints and pages to list, show, resume, stop and delete runs, with events, files and sentences."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field

from ...api import people, results, run_texts, serving, stored_runs, text_updating
from ...api.files import aimport_text
from ...api.run_options import CitationFields, RunLimits, Tracked, WordOptions
from ...documents.sandbox import in_thread
from .. import response_models
from ..job import active_record
from ..job_requests import JobCall, event_stream
from ..problems import ServerError
from ..request_models import AnswerBody, Limit, LimitsBody, Offset, RewriteBody, SentenceBody, Words
from ..response_models import event_answers, file_answers, job_answers, problems
from ..run_jobs import conflicts, edit_withdrawn, load_ended_run, run_deleted
from ..server_state import ServerState, SharingOwner, StateOf
from ..uploaded_files import safe_name
from .answer_view import detail_page, file_records, media_type, show_text
from .html import markdown, page

router = APIRouter()
# A report opened in the browser runs and loads nothing; its own policy allows only its own style sheet.
_REPORT_POLICY: Final = (
    "sandbox allow-popups; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
)


class FileOptions(BaseModel):
    """How a file is made and sent."""

    page_images: bool = Field(False, description="Put images of the cited PDF pages into the evidence report.")
    inline: bool = Field(False, description="Show the evidence report in the browser.")
    citations: CitationFields | None = Field(None, description="How docx and odt cite: Zotero's fields, or text.")
    evidence_comments: bool = Field(
        False, description="Put the words behind each citation into docx and odt as comments."
    )


AskedFile = Annotated[FileOptions, Query()]


@router.get("/runs", tags=["runs"], responses=problems())
async def get_runs(state: StateOf, limit: Limit = 50, offset: Offset = 0) -> response_models.RunList:
    """The runs, the latest first."""
    home = state.session.home
    records = await asyncio.to_thread(stored_runs.list_runs, home, limit, offset)
    total, jobs = await asyncio.to_thread(lambda: home.runs().count()), await state.jobs.known()
    return {"runs": [_with_job(record, jobs) for record in records], "total": total}


@router.get("/runs/{run_id}", tags=["runs"], responses=problems(404))
async def get_run(run_id: str, state: StateOf) -> response_models.RunWithJob:
    """A run by its id or a prefix of it, with its result once it is finished."""
    record = await stored_runs.run_details(run_id, state.session.home)
    return {**record, **_with_job(record, await state.jobs.known())}


@router.post("/runs/{run_id}/resume", tags=["runs"], responses=job_answers(404), response_class=Response)
async def resume_run(run_id: str, call: JobCall, body: LimitsBody | None = None) -> Response:
    """Resume a paused or killed run, with other limits if they are given; a finished one answers with its result."""
    limits = body or RunLimits()
    return await call.answer(limits.changes(), lambda: call.state.runs.resume_run(run_id, limits))


@router.post("/runs/{run_id}/answer", tags=["runs"], responses=job_answers(404, 409), response_class=Response)
async def answer_run(run_id: str, call: JobCall, body: AnswerBody) -> Response:
    """Answer what a run asks (`waiting` of the run), and resume it; an invalid answer leaves it waiting."""
    given = body.model_dump()
    return await call.answer(given, lambda: call.state.runs.answer_run(run_id, given))


@router.post("/runs/{run_id}/cancel", tags=["runs"], responses=problems(404))
async def cancel_run(run_id: str, state: StateOf) -> response_models.Stopped:
    """Stop a run, whichever server it runs on; it is paused, and paid answers are kept."""
    run = await state.runs.find_run(run_id)
    return {"id": run.thread_id, "stopped": await state.jobs.stop(run.thread_id)}


@router.delete("/runs/{run_id}", tags=["runs"], status_code=204, responses=problems(404, 409))
async def remove_run(run_id: str, state: StateOf) -> None:
    """Delete the run with exactly this id, if it is not active; cached model answers stay."""
    await state.runs.delete_run(run_id)


@router.get("/runs/{run_id}/events", tags=["events"], responses=event_answers(), response_class=Response)
async def run_events(run_id: str, request: Request, state: StateOf) -> Response:
    """Stream a run's events since `Last-Event-ID` until it ends; only the end of a run that is no longer in memory."""
    job = await state.jobs.find(run_id) or await load_ended_run(run_id, state.session.home)
    return event_stream(await state.jobs.find(job.id) or job, request, state.streams)


@router.get("/runs/{run_id}/files", tags=["files"], responses=problems(404, 409))
async def list_files(run_id: str, state: StateOf) -> response_models.FileList:
    """List the files of a finished run, and those of the user's version if sentences were edited."""
    record = _finished(await asyncio.to_thread(lambda: state.session.home.runs().get(run_id)))
    versions = await asyncio.to_thread(run_texts.file_versions, record, state.session.home)
    return {"files": file_records(versions, f"/api/v1/runs/{record['thread_id']}/files")}


@router.get(
    "/runs/{run_id}/files/{name}", tags=["files"], responses=file_answers(404, 409, 502), response_class=Response
)
async def get_file(run_id: str, name: str, state: StateOf, asked: AskedFile) -> Response:
    """One file as an attachment."""
    run = await state.runs.find_run(run_id)
    record = _finished(run)
    stem = run_texts.stem_of(record)
    if name.startswith(f"{stem}.edited."):
        with conflicts(run_deleted(run_id)):
            text = await asyncio.to_thread(run_texts.load_editable, state.session.home, record["thread_id"])
        if text.edits:
            record = await in_thread(run_texts.edited_record, text, state.session)
            stem = f"{stem}.edited"
        else:
            async with state.runs.lock_run(run):
                pass  # waits for a deletion or withdrawal under way, which is then recorded
            for ending in (edit_withdrawn(run.thread_id), run_deleted(run.thread_id)):
                if await state.orders.ended_by_another(ending):
                    raise ServerError(409, f"{ending} by another request.")
    return await _file(record, stem, name, state, asked)


@router.get(
    "/conversations/{thread_id}/turns/{number}/files/{name}",
    tags=["files"],
    responses=file_answers(404, 502),
    response_class=Response,
)
async def get_answer_file(
    thread_id: str, number: int, name: str, state: StateOf, owner: SharingOwner, asked: AskedFile
) -> Response:
    """Download an answer of a conversation, as edited, as a file named after its format: `answer.docx`."""
    thread_id, turn = await state.runs.find_turn(thread_id, number)
    record = await asyncio.to_thread(run_texts.answer_as_shown, thread_id, turn, state.session)
    return await _file(record, "answer", name, state, asked)


async def _file(
    record: run_texts.StoredRecord, stem: str, name: str, state: ServerState, asked: FileOptions
) -> Response:
    word = WordOptions(citations=asked.citations, evidence_comments=asked.evidence_comments)
    uploads = state.member.uploads
    async with state.renderers:  # pandoc and PDF pages need a process each
        try:
            content = await run_texts.render_file(
                record, stem, name, state.session, page_images=asked.page_images, word=word, file_of=uploads.file
            )
        except run_texts.UnknownFileError as error:
            raise ServerError(404, error.message, help=error.help) from error
    suffix = name.removeprefix(f"{stem}.")
    headers = response_models.attached(name)
    if asked.inline and suffix == "evidence.html":
        headers = {"Content-Disposition": "inline", "Content-Security-Policy": _REPORT_POLICY}
    return Response(content, media_type=media_type(suffix), headers=headers)


@router.get("/runs/{run_id}/sentences", tags=["writing"], responses=problems(404))
async def list_sentences(run_id: str, state: StateOf) -> response_models.SentenceList:
    """Every sentence of a finished text, with its findings and the user's edit of it.

    The `run_id` of a conversation's answer is `CONVERSATION.NUMBER`, also in the requests below.
    """
    text = await asyncio.to_thread(run_texts.load_editable, state.session.home, run_id)
    records = await asyncio.to_thread(run_texts.sentence_records, text)
    return {"thread_id": text.run.thread_id, "sentences": records}


@router.post("/runs/{run_id}/sentences", tags=["writing"], responses=problems(404, 409, 502, 503))
async def check_edited_sentence(run_id: str, body: SentenceBody, state: StateOf) -> response_models.KeptSentence:
    """Check an edited sentence: its citations, numbers and wording, and with the judge whether its sources support it.

    The run itself does not change. With `keep` the edit is stored as a part of the user's version; without `check`
    it is stored unchecked.
    """
    session = state.session.with_settings(**body.changes())
    run, before = await state.runs.find_text(run_id), body.before
    with conflicts(run_deleted(run.thread_id)):
        place = run.thread_id, body.position, body.text
        check = await run_texts.check_sentence(*place, session, before=before, judged=body.check)
    if body.keep:
        async with state.runs.lock_run(run):
            await asyncio.to_thread(run_texts.keep_edit, state.session.home, *place, check)
    return {**check.record, "kept": body.keep}


@router.post("/runs/{run_id}/sentences/{position}/rewrite", tags=["writing"], responses=problems(404, 409, 502, 503))
async def rewrite_sentence(
    run_id: str, position: int, body: RewriteBody, state: StateOf
) -> response_models.RewrittenSentence:
    """Have the chat model reword a sentence from the run's evidence; nothing is stored."""
    session = state.session.with_settings(**body.changes())
    run = await state.runs.find_text(run_id)
    with conflicts(run_deleted(run.thread_id)):
        return {"text": await run_texts.rewrite_sentence(run.thread_id, position, body.text, body.how, session)}


@router.post("/runs/{run_id}/import", tags=["writing"], responses=problems(404, 409))
async def import_text(
    run_id: str,
    state: StateOf,
    file: Annotated[UploadFile, File(description="The .docx, .odt, .tex or .md that was exported and edited.")],
    tracked: Annotated[
        Tracked, Form(description="What to do with tracked changes; `ask` refuses a text that has any.")
    ] = "ask",
) -> results.ImportedText:
    """Import a text that was edited elsewhere; it becomes the user's version of the run."""
    run, name, content = await state.runs.find_run(run_id), safe_name(file.filename or "") or "file", await file.read()
    async with state.runs.lock_run(run):
        return await aimport_text(state.session, name, run=run.thread_id, tracked=tracked, content=content)


@router.delete("/runs/{run_id}/sentences/{position}", tags=["writing"], status_code=204, responses=problems(404, 409))
async def withdraw_edited_sentence(run_id: str, position: int, state: StateOf) -> None:
    """Withdraw an edit, which restores the run's own sentence."""
    run, home = await state.runs.find_text(run_id), state.session.home
    withdrawn = edit_withdrawn(run.thread_id, position)
    async with state.runs.lock_run(run):
        await state.orders.find(lambda: run_texts.withdraw_edit(home, run.thread_id, position), withdrawn)
        await state.orders.end(withdrawn)
        await state.orders.end(edit_withdrawn(run.thread_id))


def _finished(run: stored_runs.RunRecord) -> run_texts.StoredRecord:
    if run.status != "finished" or run.result is None:
        raise ServerError(409, f"Run {run.thread_id} is not finished and has no files.", help="Resume it first.")
    return run_texts.stored(run.result)


def _with_job(record: results.RunSummary, jobs: Mapping[str, serving.JobEntry]) -> response_models.ListedRun:
    job = active_record(jobs, record["thread_id"])
    return {**record, "status": "running" if job else record["status"], "active": job}


pages = APIRouter(include_in_schema=False)
_ON_A_PAGE: Final = 30
_DAYS: Final = 31  # of usage
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
_LEAST: Final = 0.01  # smallest limit to suggest
_KIND_NAMES: Final = {"research": "Answer", "paper": "Whole paper"}
_NO_TEXT: Final[Mapping[str, Any]] = {"answer": None, "asked": None, "about": "", "files": (), "figures": ()}


def view_run(
    run: stored_runs.RunRecord | stored_runs.RunHead,
    session: serving.Session,
    jobs: Mapping[str, serving.JobEntry],
    spent: Iterable[stored_runs.Spending],
) -> dict[str, Any]:
    """What a page shows of a run; `state` is its job's if active, `spent` its spending per model. Blocks."""
    summary = stored_runs.run_summary(run, session.home)
    job = jobs.get(run.thread_id)
    state = job.state if job is not None and job.active else summary["status"]
    detail = "" if state == "finished" else summary["detail"]
    usage = stored_runs.usage_total([row for row in spent if row.run == run.thread_id], session.settings.prices)
    used = {
        "max-calls": usage["llm_calls"],
        "max-tokens": usage["input_tokens"] + usage["output_tokens"],
        "max-cost": usage["cost"] or 0,
    }
    reached = _FLAG.search(detail)  # the limit it hit; twice what was used is suggested
    label, look = _STATES[state]
    return {
        **summary,
        "id": run.thread_id,
        "kind": run.section,
        "kind_name": _KIND_NAMES.get(run.section) or run_texts.section_title(run.section),
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


@pages.get("/runs")
async def runs(
    request: Request,
    state: StateOf,
    show: Shown = "all",
    q: Words = "",
    start: Annotated[int, Query(ge=0, le=10**6)] = 0,
) -> Response:
    """The runs with these words in their titles, grouped by experiment, the latest first, and the usage by day."""
    session = state.session
    owned = await asyncio.to_thread(people.owned_runs, session.home)
    spent, days = await session.journal.spending(owned), await session.journal.spending_by_day(owned)
    prices, jobs = session.settings.prices, await state.jobs.known()
    heads, words = await asyncio.to_thread(lambda: session.home.runs().heads()), q.casefold().split()
    everything = await asyncio.to_thread(lambda: [view_run(run, session, jobs, spent) for run in heads])
    everything = [view for view in everything if all(word in view["title"].casefold() for word in words)]
    chosen = [view for view in everything if show == "all" or view["state"] in _SHOWN[show]]
    groups: dict[str, list[dict[str, Any]]] = {}
    for view in chosen[start : start + _ON_A_PAGE]:
        groups.setdefault(view["id"] if view["kind"] == "research" else view["title"], []).append(view)
    counts = {name: sum(view["state"] in states for view in everything) for name, states in _SHOWN.items()}
    context = {
        "updates": await asyncio.to_thread(text_updating.pending_updates, session),
        "groups": list(groups.values()),
        "q": q,
        "show": show,
        "counts": {"all": len(everything), **counts},
        "start": start,
        "following": start + _ON_A_PAGE if start + _ON_A_PAGE < len(chosen) else None,
        "preceding": max(0, start - _ON_A_PAGE) if start else None,
        "days": stored_runs.usage_by_day(days, prices)[-_DAYS:][::-1],
        "total": stored_runs.usage_total(spent, prices),
    }
    return page(request, "run_list.html" if "x-part" in request.headers else "runs.html", context)


@pages.get("/runs/{run_id}")
async def run(run_id: str, request: Request, state: StateOf) -> Response:
    session = state.session
    record = await asyncio.to_thread(run_texts.find_text, session.home, run_id)
    conversation, _, number = record.thread_id.partition(".")
    if number:
        return RedirectResponse(f"/conversations/{conversation}/turns/{number}", 303)
    spent, jobs = await session.journal.spending([record.thread_id]), await state.jobs.known()
    context = {**_NO_TEXT, "run": await asyncio.to_thread(view_run, record, session, jobs, spent)}
    if record.status == "asking":
        asked = (await stored_runs.run_details(record.thread_id, session.home))["waiting"]
        if asked is not None:
            shown = {**asked, "summary": _FLAG.sub("", asked["summary"])}
            context |= {"asked": shown, "about": markdown(asked["about"])}
    if record.status == "finished" and record.result is not None:
        context |= await _show_text(record, session)
    return page(request, "run_body.html" if "x-part" in request.headers else "run.html", context)


@pages.get("/runs/{run_id}/sentences/{position}")
async def sentence_tools(run_id: str, position: int, request: Request, state: StateOf) -> Response:
    """A sentence's check and the actions on it, shown where it is edited."""
    text = await asyncio.to_thread(run_texts.load_editable, state.session.home, run_id)
    section, current = text.section_at(position), await in_thread(run_texts.current_text, text, state.session)
    edit, checked = section.edits.get(position), None
    if edit is None or edit.checked.get("verdict"):
        found = [item for item in current.sentences if item["position"] == position]
        checked = {**run_texts.unchecked_record(position), **(edit.checked if edit else found[0])}
    context = {
        "text": current.words_at(position),
        "checked": checked,
        "written": section.as_shown()[position - section.first] if edit else "",
        "rewrites": "writer" not in state.session.extractive,
    }
    return page(request, "sentence_tools.html", context)


@pages.get("/runs/{run_id}/versions")
async def versions(run_id: str, request: Request, state: StateOf, other: Words = "") -> Response:
    """The user's version of a text beside the run's own, or beside another run with the same title."""
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


@pages.post("/runs/{run_id}/versions")
async def restore(
    run_id: str,
    state: StateOf,
    position: Annotated[int, Form(ge=0)],
    before: Annotated[str, Form(max_length=20_000)] = "",
) -> Response:
    """Return a sentence to what the run wrote, if it still has the words that were shown."""
    text = await asyncio.to_thread(run_texts.load_editable, state.session.home, run_id)
    section = text.section_at(position)
    words = section.as_shown()[position - section.first]
    body = SentenceBody(position=position, text=words, before=before, keep=True, check=False)
    await check_edited_sentence(run_id, body, state)
    return RedirectResponse(f"/runs/{quote(text.run.thread_id)}/versions", 303)


@pages.get("/runs/{run_id}/{kinds}/{which}")
async def run_detail(run_id: str, kinds: str, which: str, request: Request, state: StateOf) -> Response:
    """What a link of the text opens: a passage with its page, a finding, or a number's source."""
    record = await asyncio.to_thread(lambda: state.session.home.runs().get(run_id))
    if record.result is None:
        raise ServerError(404, f"Run {record.thread_id} is not finished.")
    view = await show_text(record, state.session, f"/runs/{record.thread_id}")
    return await detail_page(request, state, view, kinds, which)


async def _show_text(run: stored_runs.RunRecord, session: serving.Session) -> dict[str, Any]:
    """Show the user's version of a run with later retractions, and its files."""
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
