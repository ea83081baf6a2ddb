"""Syncs Zotero's items into the library and writes nothing to Zotero; a killed sync continues when it is run again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..documents.bibliography import Refusal, parse_bibliography
from ..documents.pdf.ocr import choose_ocr
from ..documents.safe_files import replace_file
from ..documents.sandbox import in_thread, raise_if_stopped
from ..errors import InputError
from ..ingestion.indexing import OnEvent
from ..ingestion.ingest import ingest_sources, remove_all
from ..ingestion.ingest_events import IngestReport
from ..ingestion.reading import ConvertedFiles
from ..ingestion.sources import SourcePaper, Sources, read_as
from ..models.http.limiter import Clock
from ..settings.config import Settings
from ..stores.home import Home
from ..stores.library import Library
from .sync_plan import SyncPlan, SyncPlanning, SyncState, file_changed, read_state, write_state
from .zotero_records import ZoteroError
from .zotero_source import OnNotice, ZoteroReading, ZoteroRequest, linked_folder, read_zotero


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The JSON of `sync zotero --json`, and whether a missing file may appear without any change in Zotero."""

    record: dict[str, Any]
    file_missing: bool


async def sync_reading(
    library: Library,
    settings: Settings,
    reading: ZoteroReading,
    request: ZoteroRequest,
    *,
    dry_run: bool = False,
    on_event: OnEvent | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> SyncReport:
    """Bring the library in line with what was read from Zotero; with `dry_run`, only plan it.

    Before any change, raises `InputError` for an unknown collection, an invalid setting or a damaged state. Errors of
    the embedding model are raised too; finished papers are then kept.
    """
    began = time.perf_counter()
    linked = await linked_folder(settings)
    async with library.home.run_lock("sync-zotero", on_wait):
        state = await asyncio.to_thread(read_state, library.home)
        given = await asyncio.to_thread(SyncPlanning, library, settings, reading, request, state, linked)
        plan = await in_thread(given.plan)
        if dry_run:
            new = [paper.key for paper in plan.changed if paper.key not in given.papers]
            known = [paper.key for paper in plan.changed if paper.key in given.papers]
            ingested = IngestReport(tuple(new), tuple(known))
        else:
            ingested = await _carry_out(library, settings, state, plan, on_event)
    by_abstract = _abstract_only_keys(library)
    renamed = {one.now for one in plan.removed}
    record = {
        "source": reading.source,
        "library": reading.library.name,
        "items": len(given.items),
        "dry_run": dry_run,
        "added": [key for key in ingested.added if key not in renamed],
        "updated": list(ingested.updated),
        "unchanged": len(plan.unchanged) + len(ingested.unchanged),
        "removed": [{"key": one.key, "why": one.why} for one in plan.removed if not one.now],
        "renamed": [{"from": one.key, "to": one.now} for one in plan.removed if one.now],
        "abstract_only": [
            paper.key for paper in (*plan.changed, *plan.unchanged) if paper.file is None or paper.key in by_abstract
        ],
        "without_file": [{"item": item.key, "title": item.title} for item in plan.without_file],
        "chunks_embedded": ingested.chunks_embedded,
        "refused": [asdict(item) for item in (*plan.refused, *ingested.refused)],
        "warnings": [*plan.warnings, *ingested.warnings],
        "seconds": round(time.perf_counter() - began, 3),
    }
    return SyncReport(record, plan.file_missing)


async def _carry_out(
    library: Library, settings: Settings, state: SyncState, plan: SyncPlan, on_event: OnEvent | None
) -> IngestReport:
    """Ingest changed papers, remove deleted ones, and record both in the state."""
    home = library.home
    if not plan.changed and not plan.removed:
        if plan.state != state:
            await asyncio.to_thread(write_state, home, plan.state)
        return IngestReport()
    sources = await in_thread(_read_papers, library, plan, settings)
    report = await ingest_sources(
        library, sources, on_event=on_event, chunking=(settings.chunk_tokens, settings.chunk_overlap)
    )
    by_file = {str(paper.source): paper.key for paper in plan.changed}
    refused = {by_file[item.path]: item.reason for item in report.refused if item.path in by_file}
    # After ingestion, since a renamed paper's passages have then passed their vectors to the new key.
    removed = [paper.key for paper in plan.removed]
    if removed:
        await remove_all(library, removed, on_event=on_event)
    await asyncio.to_thread(_remember, library, plan, refused)
    return report


def _read_papers(library: Library, plan: SyncPlan, settings: Settings) -> Sources:
    """Write the planned state, then read the files, or the page of the abstract if there is none or it is refused."""
    write_state(library.home, plan.state)
    try:
        for paper in plan.changed:
            if paper.file is None:
                replace_file(paper.page_path, paper.page.encode("utf-8"))
    except OSError as error:
        raise InputError(f"{paper.page_path}: cannot be written ({error.strerror}).") from error
    kept, ocr = ConvertedFiles(library.home.converted), choose_ocr(settings)
    by_file = library.records().keys() - _abstract_only_keys(library)
    found: list[SourcePaper] = []
    refused: list[Refusal] = []
    warnings: list[str] = []
    for wanted in plan.changed:
        raise_if_stopped()
        parsed = parse_bibliography(wanted.entry, source=wanted.item)
        if (entry := parsed.papers.get(wanted.key)) is None:
            reasons = [each.reason for each in parsed.refused] or ["its entry cannot be read"]
            refused.append(Refusal(str(wanted.source), reasons[0]))
            continue
        read = read_as(wanted.source, entry, kept, ocr)
        if isinstance(read, Refusal):
            falls_back = wanted.file is not None and bool(wanted.page) and wanted.key not in by_file
            reason = f"{read.reason}; only the abstract is indexed" if falls_back else read.reason
            refused.append(Refusal(str(wanted.source), reason))
            if not falls_back:
                continue
            replace_file(wanted.page_path, wanted.page.encode("utf-8"))
            read = read_as(wanted.page_path, entry, kept, ocr)
        if not isinstance(read, Refusal):
            found.append(replace(read, note=wanted.note, folder=None))
            warnings += read.notices
    return Sources(tuple(found), tuple(refused), tuple(warnings), folders=())


def _abstract_only_keys(library: Library) -> set[str]:
    pages = library.home.zotero.resolve()
    return {paper.key for paper in library.papers() if Path(paper.source).parent == pages}


def _remember(library: Library, plan: SyncPlan, refused: Mapping[str, str]) -> None:
    """Delete pages that no paper uses any more, and write the state; Zotero's files stay."""
    in_use = {paper.source for paper in library.papers()}
    for page in library.home.zotero.resolve().glob("*.md"):
        if str(page) not in in_use:
            page.unlink(missing_ok=True)
    papers = plan.state
    for removed in plan.removed:
        papers.pop(removed.key, None)
    there = library.records()
    for wanted in plan.changed:
        file = wanted.file.stamp if wanted.file else ""
        why = refused.get(wanted.key, "")
        if wanted.key in there or why:
            papers[wanted.key] = replace(papers[wanted.key], stamp=wanted.stamp, file=file, refused=why)
    write_state(library.home, plan.state)


async def watch_zotero(
    settings: Settings,
    home: Home,
    request: ZoteroRequest,
    sync: Callable[[ZoteroReading], Awaitable[SyncReport]],
    clock: Clock,
    on_notice: OnNotice,
) -> None:
    """Poll Zotero every `zotero_seconds` and sync, until cancelled or an error; a closed Zotero is reported once."""
    known, problem = "", ""

    def notice_once(text: str) -> None:
        nonlocal problem
        if text != problem:
            on_notice(text)
        problem = text

    while True:
        try:
            state = await asyncio.to_thread(read_state, home)
            if await asyncio.to_thread(file_changed, state):
                known = ""
            reading = await read_zotero(settings, request, known=known, on_notice=notice_once)
        except ZoteroError as error:
            notice_once(str(error))
            reading, known = None, ""
        if reading is not None:
            report = await sync(reading)
            known = "" if report.file_missing else reading.content.version
        await clock.sleep(settings.zotero_seconds)
