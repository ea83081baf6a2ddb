"""Routes to add papers by upload or identifier and look them up, and to follow these jobs."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, Response, UploadFile

from ...api.library_papers import apaper
from ...api.paper_lookup import parse_identifiers
from ...api.serving import JobOrder
from ..ingest_jobs import require_services
from ..job import Job, JobRecord
from ..job_requests import JobCall, event_stream
from ..problems import ServerError
from ..request_models import EnrichBody, IdentifierBody
from ..response_models import Stopped, event_answers, problems, reference_answers
from ..server_state import ServerState, StateOf
from ..uploaded_files import RefusedFile, refusal_reason, refuse_all, require_space, safe_name, store_file

router = APIRouter(tags=["papers"])
Files = Annotated[list[UploadFile], File(description="Papers, at most one .bib file, and notes (KEY.notes.md).")]


@router.post("/papers", status_code=202, response_class=Response, responses=reference_answers(507))
async def add_papers(
    call: JobCall, files: Files, replace: Annotated[bool, Form(description="Replace papers of the same keys.")] = False
) -> Response:
    """Store files and ingest them in the background; refused files are named with the reason at the end."""

    state = call.state

    async def start() -> Job:
        upload_id = f"ingest-{secrets.token_hex(6)}"
        async with state.ingests.receive(upload_id, sum(file.size or 0 for file in files)):
            stored: list[str] = []
            refused: list[RefusedFile] = []
            for file in files:
                name = safe_name(file.filename or "")
                reason = refusal_reason(name, stored)
                folder = state.member.uploads.folder(upload_id)
                if not reason and not await asyncio.to_thread(store_file, file.file, folder, name):
                    reason = "is empty"
                if reason:
                    refused.append(RefusedFile(name=name or "file", reason=reason))
                else:
                    stored.append(name)
            if not stored:
                raise refuse_all("files can be added", refused)
            await asyncio.to_thread(state.member.uploads.publish, upload_id)
            order = JobOrder(upload_id, "ingest", {"files": stored, "refused": refused, "replace": replace})
            return await state.ingests.start(order)

    def digest(file: UploadFile) -> str:
        file.file.seek(0)
        found = hashlib.file_digest(file.file, "sha256").hexdigest()  # type: ignore[arg-type]  # a spooled file has all it uses
        file.file.seek(0)
        return found

    content = [[file.filename, await asyncio.to_thread(digest, file)] for file in files] if call.key else []
    return await call.answer([replace, content], start, "ingests")


@router.post("/papers/by-identifier", status_code=202, response_class=Response, responses=reference_answers(507))
async def add_by_identifier(body: IdentifierBody, call: JobCall) -> Response:
    """Add papers by DOI or arXiv id in the background: metadata, entry, and the free PDF or the abstract.

    The identifiers are sent to the metadata services of the server's settings.
    """
    parse_identifiers(body.identifiers)
    await asyncio.to_thread(require_space, call.state.session, {"": 1})
    return await _start_lookup(body.model_dump(), call)


@router.post("/papers/enrich", status_code=202, response_class=Response, responses=reference_answers(404))
async def enrich_papers(body: EnrichBody, call: JobCall) -> Response:
    """Look papers up in the background: DOIs, what their entries lack, retractions and other versions.

    Titles, authors, years and DOIs are sent to the metadata services of the server's settings.
    """
    for key in body.keys:
        await apaper(call.state.session, key)
    return await _start_lookup(body.model_dump(), call)


async def _start_lookup(content: dict[str, Any], call: JobCall) -> Response:
    require_services(call.state.session)
    order = JobOrder(f"ingest-{secrets.token_hex(6)}", "ingest", content)
    return await call.answer(content, lambda: call.state.ingests.start(order), "ingests")


@router.get("/ingests/{upload_id}", responses=problems(404))
async def get_ingest(upload_id: str, state: StateOf) -> JobRecord:
    """The state of an ingest, with its report once it is finished."""
    return (await _require_ingest(upload_id, state)).record()


@router.get("/ingests/{upload_id}/events", responses=event_answers(), response_class=Response)
async def ingest_events(upload_id: str, request: Request, state: StateOf) -> Response:
    """The events of an ingest since `Last-Event-ID`, until it ends."""
    return event_stream(await _require_ingest(upload_id, state), request, state.streams)


@router.post("/ingests/{upload_id}/cancel", responses=problems(404))
async def cancel_ingest(upload_id: str, state: StateOf) -> Stopped:
    """Stop an ingest: its finished papers stay, and its other files are deleted."""
    return {"id": upload_id, "stopped": await state.ingests.stop((await _require_ingest(upload_id, state)).id)}


async def _require_ingest(upload_id: str, state: ServerState) -> Job:
    job = await state.jobs.find(upload_id)
    if job is None or job.order.kind != "ingest":
        raise ServerError(404, f"There is no ingest {upload_id!r:.60}, or it ended long ago.")
    return job
