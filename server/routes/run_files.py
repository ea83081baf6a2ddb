"""The files of finished runs and of answers, rendered when they are asked for."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from ...citations.export.report_images import ReportImages
from ...documents.sandbox import in_thread
from ...runs.cited_pages import CitedPages, cited_pages
from ...runs.edited_record import edited_record
from ...runs.report_figures import report_figures
from ...runs.result_files import ResultFiles, UnknownFileError, stem_of
from ...runs.result_record import StoredRecord, stored
from ...runs.sentence_check import load_editable
from ...stores.backends import backend_of
from ...stores.run_records import RunRecord
from ..attachments import attachment, file_records
from ..orders import conflicts, edit_withdrawn, run_deleted
from ..problems import ServerError
from ..response_models import Responses, problems
from ..server_state import ServerState, StateOf
from ..text_models import FileList

router = APIRouter(tags=["files"])
_CONTENT: Final[Responses] = {200: {"description": "The file.", "content": {"application/octet-stream": {}}}}
PageImages = Annotated[bool, Query(description="Put images of the cited PDF pages into the evidence report.")]
Inline = Annotated[bool, Query(description="Show the evidence report in the browser.")]


@router.get("/runs/{run_id}/files", responses=problems(404, 409))
async def list_files(run_id: str, state: StateOf) -> FileList:
    """The files of a finished run; with edited sentences also those of the user's version."""
    record = await _record(run_id, state)
    home = state.session.home
    versions = [await asyncio.to_thread(ResultFiles.of, record, home)]
    if await asyncio.to_thread(backend_of(home).edited_sentences().of, record["thread_id"]):
        versions.append(await asyncio.to_thread(ResultFiles.of, record, home, f"{versions[0].stem}.edited"))
    return FileList.model_validate({"files": file_records(versions, f"/api/v1/runs/{record['thread_id']}/files")})


@router.get("/runs/{run_id}/files/{name}", responses={**_CONTENT, **problems(404, 409, 502)}, response_class=Response)
async def get_file(
    run_id: str, name: str, state: StateOf, page_images: PageImages = False, inline: Inline = False
) -> Response:
    """One file as an attachment."""
    record = _finished(await state.runs.find_run(run_id))
    stem = stem_of(record)
    if name.startswith(f"{stem}.edited."):
        with conflicts(run_deleted(run_id)):
            text = await asyncio.to_thread(load_editable, state.session.home, record["thread_id"])
        if text.edits:
            record = await edited_record(text, state.session)
            stem = f"{stem}.edited"
        elif await state.orders.ended_by_another(withdrawn := edit_withdrawn(record["thread_id"])):
            raise ServerError(409, f"{withdrawn} by another request.")
    return await _file(record, stem, name, state, page_images, inline)


@router.get(
    "/conversations/{thread_id}/turns/{number}/files/{name}",
    responses={**_CONTENT, **problems(404, 502)},
    response_class=Response,
)
async def get_answer_file(
    thread_id: str, number: int, name: str, state: StateOf, page_images: PageImages = False, inline: Inline = False
) -> Response:
    """One file of an answer in a conversation, called `answer` with the format: `answer.docx`."""
    register = await asyncio.to_thread(backend_of(state.session.home).conversations)
    entry = await asyncio.to_thread(register.get, thread_id)
    turns = await asyncio.to_thread(register.turns, entry.thread_id)
    turn = next((turn for turn in turns if turn.number == number), None)
    if turn is None:
        raise ServerError(404, f"Conversation {entry.thread_id} has no turn {number}.")
    return await _file(stored(turn.record), "answer", name, state, page_images, inline)


async def _file(
    record: StoredRecord, stem: str, name: str, state: ServerState, with_pages: bool, inline: bool
) -> Response:
    is_report = name.endswith(".evidence.html")
    library = state.session.library
    async with state.renderers:  # pandoc and PDF pages take a process each
        given = (record, library, state.uploads.file)
        pages = await in_thread(cited_pages, *given) if is_report and with_pages else CitedPages()
        figures = await asyncio.to_thread(report_figures, record, library) if is_report else {}
        shown = ReportImages(pages.images, figures)
        files = await asyncio.to_thread(ResultFiles.of, record, state.session.home, stem, shown)
        try:
            content = await in_thread(files.named, name)
        except UnknownFileError as error:
            raise ServerError(404, error.message, help=error.help) from error
    return attachment(name, content, name.removeprefix(f"{stem}."), inline=inline)


async def _record(run_id: str, state: ServerState) -> StoredRecord:
    """The stored record of a finished run; raises `UnknownRunError`, and `ServerError` for an unfinished one."""
    return _finished(await asyncio.to_thread(lambda: backend_of(state.session.home).runs().get(run_id)))


def _finished(run: RunRecord) -> StoredRecord:
    if run.status != "finished" or run.result is None:
        raise ServerError(409, f"Run {run.thread_id} is not finished and has no files.", help="Resume it first.")
    return stored(run.result)
