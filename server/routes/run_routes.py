"""Routes to list, show, resume, stop and delete runs, and for their events, files and sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from pydantic import BaseModel, Field

from ...api import run_texts
from ...api.files import aimport_text
from ...api.results import ImportedText, RunSummary
from ...api.run_options import CitationFields, RunLimits, Tracked, WordOptions
from ...api.running import image_type
from ...api.serving import JobEntry
from ...api.stored_runs import RunRecord, list_runs, run_details
from ...documents.sandbox import in_thread
from .. import response_models
from ..job import active_record
from ..job_requests import JobCall, event_stream
from ..problems import ServerError
from ..request_models import AnswerBody, Limit, LimitsBody, Offset, RewriteBody, SentenceBody
from ..response_models import event_answers, file_answers, job_answers, problems
from ..run_jobs import conflicts, edit_withdrawn, load_ended_run, run_deleted
from ..server_state import ServerState, StateOf
from ..uploaded_files import safe_name

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
    records = await asyncio.to_thread(list_runs, home, limit, offset)
    total, jobs = await asyncio.to_thread(lambda: home.runs().count()), await state.jobs.known()
    return {"runs": [_with_job(record, jobs) for record in records], "total": total}


@router.get("/runs/{run_id}", tags=["runs"], responses=problems(404))
async def get_run(run_id: str, state: StateOf) -> response_models.RunWithJob:
    """A run by its id or a prefix of it, with its result once it is finished."""
    record = await run_details(run_id, state.session.home)
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
            async with state.runs.order_on(run):
                pass  # a deletion or withdrawal that has begun is recorded once it is complete
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
async def get_answer_file(thread_id: str, number: int, name: str, state: StateOf, asked: AskedFile) -> Response:
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
    return Response(content, media_type=_media_type(suffix), headers=headers)


@router.get("/runs/{run_id}/sentences", tags=["writing"], responses=problems(404))
async def list_sentences(run_id: str, state: StateOf) -> response_models.SentenceList:
    """Every sentence of a finished text, with its findings and the user's edit of it.

    As `run_id` an answer of a conversation is `CONVERSATION.NUMBER`, also in the requests below.
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
        check = await run_texts.check_sentence(
            run.thread_id, body.position, body.text, session, before=before, judged=body.check
        )
    if body.keep:
        async with state.runs.order_on(run):
            await asyncio.to_thread(
                run_texts.keep_edit, state.session.home, run.thread_id, body.position, body.text, check
            )
    return {**check.record, "kept": body.keep}


@router.post("/runs/{run_id}/sentences/{position}/rewrite", tags=["writing"], responses=problems(404, 409, 502, 503))
async def rewrite_sentence(
    run_id: str, position: int, body: RewriteBody, state: StateOf
) -> response_models.RewrittenSentence:
    """Have the chat model say a sentence otherwise, from the run's evidence; nothing is kept."""
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
        Tracked, Form(description="What becomes of tracked changes; `ask` refuses a text with any.")
    ] = "ask",
) -> ImportedText:
    """Take back a text that was edited elsewhere: it is the user's version of the run from now on."""
    run, name, content = await state.runs.find_run(run_id), safe_name(file.filename or "") or "file", await file.read()
    async with state.runs.order_on(run):
        return await aimport_text(state.session, name, run=run.thread_id, tracked=tracked, content=content)


@router.delete("/runs/{run_id}/sentences/{position}", tags=["writing"], status_code=204, responses=problems(404, 409))
async def withdraw_edited_sentence(run_id: str, position: int, state: StateOf) -> None:
    """Withdraw an edit, so that the run's own sentence stands again."""
    run, home = await state.runs.find_text(run_id), state.session.home
    withdrawn = edit_withdrawn(run.thread_id, position)
    async with state.runs.order_on(run):
        await state.orders.find(lambda: run_texts.withdraw_edit(home, run.thread_id, position), withdrawn)
        await state.orders.end(withdrawn)
        await state.orders.end(edit_withdrawn(run.thread_id))


def file_records(files: Sequence[run_texts.ResultFiles], base: str) -> list[response_models.ResultFile]:
    return [
        {
            "name": name,
            "format": suffix,
            "version": "edited" if place else "original",
            "media_type": _media_type(suffix),
            "href": f"{base}/{quote(name)}",
        }
        for place, result in enumerate(files)
        for suffix, name in zip(result.suffixes, result.names(), strict=True)
    ]


def _media_type(suffix: str) -> str:
    return response_models.MEDIA_TYPES.get(suffix) or image_type(suffix) or "application/octet-stream"


def _finished(run: RunRecord) -> run_texts.StoredRecord:
    if run.status != "finished" or run.result is None:
        raise ServerError(409, f"Run {run.thread_id} is not finished and has no files.", help="Resume it first.")
    return run_texts.stored(run.result)


def _with_job(record: RunSummary, jobs: Mapping[str, JobEntry]) -> response_models.ListedRun:
    job = active_record(jobs, record["thread_id"])
    return {**record, "status": "running" if job else record["status"], "active": job}
