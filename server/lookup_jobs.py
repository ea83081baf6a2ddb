"""Papers that are added by identifier or looked up at metadata services, as jobs beside the ingests of uploads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..api.paper_lookup import Adding, add_each, aenrich, identifiers_of
from ..graph.session import Session
from ..ingestion.ingest_events import IngestEvent
from ..metadata.enriching import Enrichment
from ..models.journal.budget import bill_to
from .job import Emit, Work
from .problems import ServerError
from .uploaded_files import refusal

_NEW = frozenset({"added", "abstract"})
_REFUSED = frozenset({"refused", "similar", "entry"})


def require_services(session: Session) -> None:
    """Raise `ServerError` if this server asks no metadata services."""
    if not session.settings.metadata_services:
        raise ServerError(
            409, "This server asks no metadata services.", help="Its operator names some in CITELOOM_METADATA_SERVICES."
        )


def adding_work(job_id: str, request: Mapping[str, Any], session: Session) -> Work:
    """Add the papers of `identifiers`; the result has the fields of an ingest's, and `papers` with a record of each."""

    async def work(emit: Emit) -> Mapping[str, Any]:
        def show(event: IngestEvent) -> None:
            kind = type(event).__name__.lower()
            emit(kind, {"kind": kind, **asdict(event)})

        embedded, warnings, records = 0, list[str](), list[dict[str, Any]]()

        def report(made: Any) -> None:
            nonlocal embedded
            embedded += made.chunks_embedded
            warnings.extend(made.warnings)

        how = Adding(
            agreed=lambda _: request["download"],
            wants_file=request["download"],
            anyway=request["anyway"],
            on_event=show,
            on_report=report,
            on_notice=lambda text: emit("notice", {"text": text}),
        )
        with bill_to(job_id, session.budget(job_id)):
            async for record in add_each(session, identifiers_of(request["identifiers"]), how):
                records.append(_without_path(record))
                emit("paper", {"kind": "paper", **records[-1]})
        result = {
            "added": [record["key"] for record in records if record["outcome"] in _NEW],
            "updated": [],
            "unchanged": [record["key"] for record in records if record["outcome"] == "duplicate"],
            "refused": [refusal(item["identifier"], _reason(item)) for item in records if item["outcome"] in _REFUSED],
            "warnings": warnings,
            "chunks_embedded": embedded,
            "papers": records,
        }
        emit("done", {"kind": "done", "result": result})
        return result

    return work


def enriching_work(request: Mapping[str, Any], session: Session) -> Work:
    """Look the papers of `keys` up; the result is the JSON of `papers enrich --json`."""

    async def work(emit: Emit) -> Mapping[str, Any]:
        def show(found: Enrichment) -> None:
            emit("paper", {"kind": "paper", **found.as_dict()})

        result = await aenrich(session, request["keys"], refresh=request["refresh"], on_paper=show)
        emit("done", {"kind": "done", "result": result})
        return result

    return work


def _without_path(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with the name of its file instead of its path on the server."""
    return {**record, "file": str(record["file"]).replace("\\", "/").rsplit("/", 1)[-1]}


def _reason(record: Mapping[str, Any]) -> str:
    nothing = "there is nothing to index: no abstract, and no free PDF was fetched"
    return str(record["why"] or nothing).replace("--anyway adds", "'anyway' adds")
