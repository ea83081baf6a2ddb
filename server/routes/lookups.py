"""Papers by identifier, and what metadata services know of the library's papers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from ...api.paper_lookup import identifiers_of
from ...stores.job_records import JobOrder
from ..idempotency import IdempotencyKey, request_mark
from ..job import Job
from ..job_requests import job_reference
from ..lookup_jobs import require_services
from ..request_models import EnrichBody, IdentifierBody
from ..response_models import reference_answers
from ..server_state import ServerState, StateOf
from ..uploaded_files import require_space

router = APIRouter(prefix="/papers", tags=["papers"])


@router.post("/by-identifier", status_code=202, response_class=Response, responses=reference_answers(507))
async def add_by_identifier(
    body: IdentifierBody, request: Request, state: StateOf, idempotency_key: IdempotencyKey = None
) -> Response:
    """Add papers by DOI or arXiv id in the background: metadata, entry, and the free PDF or the abstract.

    The identifiers are sent to the metadata services of the server's settings.
    """
    identifiers_of(body.identifiers)
    limit = state.session.settings.max_library_size
    await asyncio.to_thread(require_space, state.session.home, limit, {"": 1})
    return await _started(body.model_dump(), request, state, idempotency_key)


@router.post("/enrich", status_code=202, response_class=Response, responses=reference_answers(404))
async def enrich_papers(
    body: EnrichBody, request: Request, state: StateOf, idempotency_key: IdempotencyKey = None
) -> Response:
    """Look papers up in the background: DOIs, what their entries lack, retractions and other versions.

    Titles, authors, years and DOIs are sent to the metadata services of the server's settings.
    """
    for key in body.keys:
        await asyncio.to_thread(state.session.library.paper, key)
    return await _started(body.model_dump(), request, state, idempotency_key)


async def _started(content: Mapping[str, Any], request: Request, state: ServerState, key: str | None) -> Response:
    require_services(state.session)

    async def start() -> Job:
        return await state.ingests.start(JobOrder(f"ingest-{secrets.token_hex(6)}", "ingest", dict(content)))

    job = await state.keys.get_or_call(key, request_mark(request, content), find=state.ingests.find, start=start)
    return job_reference(job, request, f"/api/v1/ingests/{job.id}", state.streams)
