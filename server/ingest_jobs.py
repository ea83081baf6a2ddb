"""Jobs that ingest uploads, add papers by identifier, look papers up at metadata services, or check a text."""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from ..api import checking, ingesting, running
from ..api.paper_lookup import Adding, aadd_papers, aenrich, parse_identifiers
from ..api.serving import JobOrder, Session
from ..documents.pdf.reader import BY_OCR
from ..errors import CiteloomError
from .job import Emit, Job, lost_connection
from .jobs import Jobs
from .problems import ServerError
from .uploaded_files import RefusedFile, file_name, require_space, strip_folder

_ADDED: Final = frozenset({"added", "abstract"})
_REFUSED: Final = frozenset({"refused", "similar", "entry"})
_NOTHING: Final = "there is nothing to index: no abstract, and no free PDF was fetched"
_log = logging.getLogger("citeloom.server")


@dataclass(frozen=True, slots=True)
class IngestJobs:
    session: Session
    jobs: Jobs
    uploads: ingesting.Uploads
    _received: dict[str, int] = field(default_factory=dict)  # bytes

    async def start(self, order: JobOrder) -> Job:
        """Ingest the files of an upload, add papers by `identifiers`, look papers up by `keys`, or check a text.

        For an upload, `order.request` holds `files`, `refused` and `replace`.
        """
        if "identifiers" in order.request:
            work = partial(self._add_by_identifier, order.id, order.request)
        elif "keys" in order.request:
            work = partial(self._enrich, order.request)
        elif "check" in order.request:
            work = partial(self._check, order.request["check"])
        else:
            if not ingesting.UPLOAD_ID.fullmatch(order.id):
                raise ServerError(404, "There is no such upload.")
            work = partial(self._ingest, order.id, order.request)
        return await self.jobs.start(order, work)

    async def start_sample(self) -> Job:
        """Ingest the papers of the sample library, as if they were uploaded."""
        upload_id = f"ingest-{secrets.token_hex(6)}"
        folder = self.uploads.folder(upload_id)
        async with self.receive(upload_id, sum(file.stat().st_size for file in ingesting.SAMPLE_FILES)):
            await asyncio.to_thread(folder.mkdir, parents=True)
            for file in ingesting.SAMPLE_FILES:
                await asyncio.to_thread(shutil.copy, file, folder)
            await asyncio.to_thread(self.uploads.publish, upload_id)
            names = [file.name for file in ingesting.SAMPLE_FILES]
            return await self.start(JobOrder(upload_id, "ingest", {"files": names, "refused": [], "replace": False}))

    async def find(self, order: JobOrder) -> Job | None:
        """The job of an earlier upload; None once stopped, or after a server restart."""
        job = await self.jobs.find(order.id)
        return None if job is None or job.state == "paused" else job

    async def stop(self, upload_id: str) -> bool:
        """Stop an ingest: its finished papers stay, and the other files are deleted."""
        stopped = await self.jobs.stop(upload_id)
        if stopped:
            await self.tidy(changed=[upload_id])
        return stopped

    @asynccontextmanager
    async def reserve(self, upload_id: str, size: int) -> AsyncIterator[None]:
        """Reserve space for an upload; raises `ServerError` with status 507 if it does not fit."""
        self._received[upload_id] = size
        try:
            await asyncio.to_thread(require_space, self.session, dict(self._received))
            yield
        finally:
            del self._received[upload_id]

    @asynccontextmanager
    async def receive(self, upload_id: str, size: int) -> AsyncIterator[None]:
        """Keep an upload's files until its job starts, or delete them if no job does; raises what `reserve` raises."""
        try:
            async with self.reserve(upload_id, size):
                yield
        except BaseException:
            try:
                await asyncio.shield(self.tidy(changed=[upload_id]))
            except CiteloomError as error:
                _log.warning("Files of %s are not deleted yet: %s", upload_id, error)
            raise

    async def tidy(self, *, ended: Iterable[str] = (), changed: Iterable[str] = ()) -> None:
        """Delete files that belong to no paper and no unfinished job, from idle, `changed` and `ended` uploads."""
        # In this order, so that uploads received or registered meanwhile are in one of these sets.
        idle = {*await asyncio.to_thread(self.uploads.idle), *changed}
        received = set(self._received)
        unfinished = await asyncio.to_thread(self.uploads.unfinished)
        await ingesting.aremove_orphans(self.session, self.uploads, {*ended, *(idle - received - unfinished)})

    async def _ingest(self, upload_id: str, request: Mapping[str, Any], emit: Emit) -> Mapping[str, Any]:
        folder = self.uploads.folder(upload_id)
        sources = await ingesting.apaper_sources(self.session)
        await asyncio.to_thread(self.uploads.fetch, upload_id)
        bib = next((name for name in request["files"] if name.endswith(".bib")), None)
        files = [folder / name for name in request["files"] if name != bib and (folder / name).is_file()]
        try:
            report = await ingesting.aingest_upload(
                self.session,
                upload_id,
                files,
                folder / bib if bib and (folder / bib).is_file() else None,
                self.uploads,
                replaces=bool(request["replace"]),
                on_event=_emitter(emit),
            )
        except Exception as error:
            if isinstance(error, CiteloomError):
                error.message = strip_folder(error.message, folder)
            if not lost_connection(error):
                await self.tidy(ended=[upload_id])
            raise
        replaced = [self.uploads.place_of(sources[key]) for key in report.updated if key in sources]
        await self.tidy(ended=[upload_id], changed=[place[0] for place in replaced if place is not None])
        later = [
            RefusedFile(name=strip_folder(item.path, folder), reason=_uploaded(strip_folder(item.reason, folder)))
            for item in report.refused
        ]
        return {
            "added": list(report.added),
            "updated": list(report.updated),
            "unchanged": list(report.unchanged),
            "refused": [*request["refused"], *later],
            "warnings": [strip_folder(line, folder) for line in report.warnings],
            "chunks_embedded": report.chunks_embedded,
            "seconds": round(report.seconds, 3),
        }

    async def _add_by_identifier(self, job_id: str, request: Mapping[str, Any], emit: Emit) -> Mapping[str, Any]:
        """Add papers by `identifiers`; the result has an ingest's fields plus the records of `papers`."""
        reports: list[dict[str, Any]] = []
        options = Adding(
            agreed=lambda _: request["download"],
            wants_file=request["download"],
            anyway=request["anyway"],
            on_event=_emitter(emit),
            on_report=reports.append,
            on_notice=lambda text: emit("notice", {"text": text}),
            on_record=lambda record: emit("paper", {"kind": "paper", **_strip_path(record)}),
        )
        identifiers = parse_identifiers(request["identifiers"])
        records = [_strip_path(record) for record in await aadd_papers(self.session, identifiers, options, run=job_id)]
        return {
            "added": [record["key"] for record in records if record["outcome"] in _ADDED],
            "updated": [],
            "unchanged": [record["key"] for record in records if record["outcome"] == "duplicate"],
            "refused": [
                {"name": item["identifier"], "reason": (item["why"] or _NOTHING).replace("--anyway", "'anyway'")}
                for item in records
                if item["outcome"] in _REFUSED
            ],
            "warnings": [warning for report in reports for warning in report["warnings"]],
            "chunks_embedded": sum(report["chunks_embedded"] for report in reports),
            "papers": records,
        }

    async def _enrich(self, request: Mapping[str, Any], emit: Emit) -> Mapping[str, Any]:
        return await aenrich(
            self.session,
            request["keys"],
            refresh=request["refresh"],
            on_paper=lambda record: emit("paper", {"kind": "paper", **record}),
        )

    async def _check(self, request: Mapping[str, Any], emit: Emit) -> Mapping[str, Any]:
        given = await check_arguments(request)
        return await checking.acheck_prose(self.session, **given, on_notice=lambda text: emit("notice", {"text": text}))


async def check_arguments(request: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `acheck_prose` from a request; raises `InputError` for an invalid experiment."""
    given = request["experiment"]
    experiment = None if given is None else await asyncio.to_thread(running.parse_experiment, given)
    return {**request, "experiment": experiment}


def require_services(session: Session) -> None:
    if not session.settings.metadata_services:
        raise ServerError(
            409,
            "This server uses no metadata services.",
            help="Its operator can name some in CITELOOM_METADATA_SERVICES.",
        )


def _emitter(emit: Emit) -> Callable[[ingesting.IngestEvent], None]:
    return lambda event: emit((record := ingesting.event_record(event))["kind"], record)


def _uploaded(reason: str) -> str:
    """Why a file was refused, with what whoever uploaded it can do."""
    return reason.replace(
        BY_OCR,
        "upload it with its text recognized, or start the server with CITELOOM_OCR=auto, where tesseract is installed",
    )


def _strip_path(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with its file's name instead of its path on the server."""
    return {**record, "file": file_name(record["file"])}
