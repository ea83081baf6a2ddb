"""Ingests of uploaded files as jobs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..documents.bibliography import Refusal, read_bibliography
from ..documents.paper_metadata import has_own_entry
from ..documents.sandbox import in_thread
from ..documents.types import Paper
from ..errors import CiteloomError
from ..graph.figure_descriptions import describe_papers
from ..graph.session import Session
from ..ingestion.ingest import ingest_sources
from ..ingestion.ingest_events import IngestEvent, IngestReport
from ..ingestion.langchain_documents import SourcePaper
from ..ingestion.orphaned_files import remove_orphans
from ..ingestion.paper_matching import matching_entries, update_metadata
from ..ingestion.reading import ConvertedFiles, PdfReading
from ..ingestion.sources import Sources, merge_text_with_pdf, read_as, read_sources
from ..models.journal.budget import bill_to
from ..stores.job_records import JobOrder
from ..stores.library import Library
from ..stores.server_protocols import Uploads
from .job import Emit, Job, Work
from .job_sharing import lost_connection
from .jobs import Jobs
from .lookup_jobs import adding_work, enriching_work
from .uploaded_files import bibliography_of, refusal, require_space, require_upload, without_folder

_log = logging.getLogger("citeloom.server")


@dataclass(frozen=True, slots=True)
class IngestJobs:
    """Makes jobs of uploads."""

    session: Session
    jobs: Jobs
    uploads: Uploads
    _received: dict[str, int] = field(default_factory=dict)  # bytes

    async def start(self, order: JobOrder) -> Job:
        """Ingest the files of an upload, add papers by `identifiers`, or look papers up by their `keys`.

        For an upload, `order.request` has its `files`, what was `refused`, and `replace`.
        """
        return await self.jobs.start(order, self._work_of(order))

    async def find(self, order: Mapping[str, Any]) -> Job | None:
        """The job of an earlier upload; None once it was stopped or the server was started again."""
        job = await self.jobs.find(order["id"])
        return None if job is None or job.state == "paused" else job

    async def stop(self, upload_id: str) -> bool:
        """Stop an ingest: its finished papers stay, and the other files are deleted."""
        stopped = await self.jobs.stop(upload_id)
        if stopped:
            await self.tidy(changed=[upload_id])
        return stopped

    @asynccontextmanager
    async def reserve(self, upload_id: str, size: int) -> AsyncIterator[None]:
        """Count an upload of this size to the library's; raises `ServerError` with status 507 if it does not fit."""
        self._received[upload_id] = size
        try:
            limit = self.session.settings.max_library_size
            await asyncio.to_thread(require_space, self.session.home, limit, dict(self._received))
            yield
        finally:
            del self._received[upload_id]

    @asynccontextmanager
    async def receive(self, upload_id: str, size: int) -> AsyncIterator[None]:
        """Keep the files of an upload until its job begins; if none does, they are deleted. Raises as `reserve`."""
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
        """Delete files that belong to no paper: of idle uploads, of `changed` ones, and of those whose job has `ended`.

        Uploads that a job works on or will resume keep all their files.
        """

        def remove() -> None:
            # In this order, so that an upload that is received or registered meanwhile is in one of them.
            idle = {*self.uploads.idle(), *changed}
            received = set(self._received.copy())
            among = {*ended, *(idle - received - self.uploads.unfinished())}
            remove_orphans(self.session.library, self.uploads, among)

        await asyncio.to_thread(remove)

    def _work_of(self, order: JobOrder) -> Work:
        if "identifiers" in order.request:
            return adding_work(order.id, order.request, self.session)
        if "keys" in order.request:
            return enriching_work(order.request, self.session)
        return self._work(order.id, order.request)

    def _work(self, upload_id: str, request: Mapping[str, Any]) -> Work:
        require_upload(upload_id)
        folder, library = self.uploads.folder(upload_id), self.session.library

        async def work(emit: Emit) -> Mapping[str, Any]:
            before = {paper.key: paper for paper in library.papers()}
            await asyncio.to_thread(self.uploads.fetch, upload_id)
            try:
                report = await _ingest(upload_id, request, self.session, self.uploads, emit)
            except Exception as error:
                if isinstance(error, CiteloomError):
                    error.message = without_folder(error.message, folder)
                if not lost_connection(error):
                    await self.tidy(ended=[upload_id])
                raise
            replaced = [self.uploads.place_of(before[key].source) for key in report.updated if key in before]
            await self.tidy(ended=[upload_id], changed=[place[0] for place in replaced if place is not None])
            record = _record(report, folder, request["refused"])
            emit("done", {"kind": "done", "result": record})
            return record

        return work


async def _ingest(
    upload_id: str, request: Mapping[str, Any], session: Session, uploads: Uploads, emit: Emit
) -> IngestReport:
    settings, folder = session.settings, uploads.folder(upload_id)
    bib = bibliography_of(request["files"])
    papers = [folder / name for name in request["files"] if name != bib and (folder / name).is_file()]
    converted = ConvertedFiles(session.home.converted)
    given = folder / bib if bib and (folder / bib).is_file() else None
    sources = Sources((), (), (), ())
    if papers or given is None:
        sources = await in_thread(read_sources, papers, given, (), converted, PdfReading.of(settings))
    sources, known = await asyncio.to_thread(_new, sources, session, uploads, replaces=bool(request["replace"]))

    def show(event: IngestEvent) -> None:
        kind = type(event).__name__.lower()
        emit(kind, {"kind": kind, **asdict(event)})

    with bill_to(upload_id, session.budget(upload_id)):
        chunking = (settings.chunk_tokens, settings.chunk_overlap)
        report = await ingest_sources(session.library, sources, on_event=show, chunking=chunking)
    updated, said = await _with_entries(session.library, given, known, report) if given else ([], [])
    undescribed = await _undescribed(upload_id, session, [*report.added, *report.updated], show)
    return replace(
        report,
        updated=(*report.updated, *updated),
        unchanged=tuple(key for key in (*report.unchanged, *known) if key not in updated),
        warnings=(*report.warnings, *said, *undescribed),
    )


async def _with_entries(
    library: Library, bib: Path, known: Mapping[str, Paper], report: IngestReport
) -> tuple[list[str], list[str]]:
    """Give papers that were there the metadata of the `.bib`; the keys of those that changed, and what to say of it.

    `known` are the papers of uploaded files whose text the library has.
    """
    bibliography = await asyncio.to_thread(read_bibliography, bib)
    entries = await asyncio.to_thread(matching_entries, library, bibliography)
    entries |= {key: paper for key, paper in known.items() if has_own_entry(paper)}
    updated = await update_metadata(library, {key: entry for key, entry in entries.items() if key not in report.added})
    problems = [f"{item.path}: {item.reason}." for item in bibliography.refused if item not in report.refused]
    if not entries and not report.added:
        problems.append(f"{bib}: none of its entries is of a paper in the library.")
    return [key for key in updated if key not in report.updated], problems


async def _undescribed(
    upload_id: str, session: Session, keys: Sequence[str], show: Callable[[IngestEvent], None]
) -> list[str]:
    """Describe the figures of new papers if a vision model is configured; one line on each that it did not."""
    if not session.settings.describes_figures or not keys:
        return []
    try:
        report = await describe_papers(session, upload_id, keys, on_event=show)
    except CiteloomError as error:
        return [f"Not all figures are described: {error}"]
    return [f"{item.key}, {item.figure} is not described: {item.reason}." for item in report.refused]


def _new(sources: Sources, session: Session, uploads: Uploads, *, replaces: bool) -> tuple[Sources, dict[str, Paper]]:
    """The sources that are new, and those that the library has, by the keys that they have there.

    Other papers of the same keys are refused unless it `replaces` them.

    On the command line a file of the same name is the same paper, edited; an upload may come from anybody.
    """
    records = session.library.records()
    kept = {
        record.paper.content_hash: key
        for key, record in records.items()
        if uploads.place_of(record.paper.source) or Path(record.paper.source).is_file()
    }
    found, refused = [], list(sources.refused)
    known: dict[str, Paper] = {}
    for source in sources.found:
        key = source.paper.key
        same = kept.get(source.paper.content_hash)
        if same is not None and not (replaces and same == key):
            known[same] = source.paper
        elif key in records and not replaces and records[key].paper.content_hash != source.paper.content_hash:
            both = _with_other_file(source, records[key].paper, session)
            if both is None:
                refused.append(Refusal(str(source.path), f"the library has another paper with the key {key}"))
            else:
                found.append(both)
        else:
            found.append(source)
    return replace(sources, found=tuple(found), refused=tuple(refused)), known


def _with_other_file(source: SourcePaper, paper: Paper, session: Session) -> SourcePaper | None:
    """The uploaded text or PDF as one paper with the file of the library's paper, if they are the same; else None."""
    converted = ConvertedFiles(session.home.converted)
    read = read_as(Path(paper.source), paper, converted, PdfReading.of(session.settings))
    return None if isinstance(read, Refusal) else merge_text_with_pdf(read[0], source)


def _record(report: IngestReport, folder: Path, refused: list[dict[str, Any]]) -> dict[str, Any]:
    """The report with keys, and with the names of files instead of paths."""
    later = [refusal(without_folder(item.path, folder), without_folder(item.reason, folder)) for item in report.refused]
    return {
        "added": list(report.added),
        "updated": list(report.updated),
        "unchanged": list(report.unchanged),
        "refused": [*refused, *later],
        "warnings": [without_folder(line, folder) for line in report.warnings],
        "chunks_embedded": report.chunks_embedded,
        "seconds": round(report.seconds, 3),
    }
