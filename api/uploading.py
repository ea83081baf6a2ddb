"""Ingests uploaded files, and deletes those that belong to no paper."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..documents import Paper
from ..documents.bibliography import Refusal, has_own_entry, read_bibliography
from ..documents.pdf.ocr import choose_ocr
from ..documents.sandbox import in_thread
from ..graph.session import Session
from ..ingestion.ingest_events import IngestEvent, IngestReport as IngestReport
from ..ingestion.orphaned_files import remove_orphans
from ..ingestion.paper_matching import matching_entries, update_metadata
from ..ingestion.reading import ENDINGS, ConvertedFiles
from ..ingestion.sources import Sources, merge_text_with_pdf, read_as, read_sources
from ..stores.library import Library
from ..stores.uploads import UPLOAD, Uploads as Uploads
from .blocking import threaded
from .ingesting import IngestRequest, aingest_papers
from .run_options import IngestOptions

PAPER_SUFFIXES = tuple(ENDINGS)
UPLOAD_ID = UPLOAD
# The made-up papers of the README's demo, with their `.bib`.
SAMPLE_FILES = tuple(sorted((Path(__file__).parents[1] / "examples" / "library").glob("*.*")))


async def aingest_upload(
    session: Session,
    upload_id: str,
    files: Sequence[Path],
    bib: Path | None,
    uploads: Uploads,
    *,
    replaces: bool,
    on_event: Callable[[IngestEvent], None],
) -> IngestReport:
    """Ingest uploaded files, billed to the upload; existing papers get metadata from the `.bib`.

    A file whose key belongs to a different paper is refused unless it `replaces` that paper. Figures of new papers are
    described if a vision model is configured. Raises as `aingest` does.
    """
    sources = Sources((), (), (), ())
    if files or bib is None:
        converted = ConvertedFiles(session.home.converted)
        sources = await in_thread(read_sources, files, bib, (), converted, choose_ocr(session.settings))
    sources, known = await asyncio.to_thread(_select_new, sources, session, uploads, replaces=replaces)
    request = IngestRequest((), IngestOptions())
    outcome = await aingest_papers(session, request, sources=sources, on_event=on_event, run=upload_id)
    report = outcome.report
    updated, problems = await _update_entries(session.library, bib, known, report) if bib else ([], [])
    refused = outcome.figures.refused if outcome.figures else ()
    undescribed = [f"{item.key}, {item.figure} is not described: {item.reason}." for item in refused]
    if outcome.stopped is not None:
        undescribed.append(f"Not all figures are described: {outcome.stopped}")
    return replace(
        report,
        updated=(*report.updated, *updated),
        unchanged=tuple(key for key in (*report.unchanged, *known) if key not in updated),
        warnings=(*report.warnings, *problems, *undescribed),
    )


def _select_new(
    sources: Sources, session: Session, uploads: Uploads, *, replaces: bool
) -> tuple[Sources, dict[str, Paper]]:
    """Separate new sources from known ones, the latter by their keys in the library.

    On the command line a file of the same name is an edit of the same paper; uploads may come from anybody, so a
    different paper with the same key is refused unless it `replaces` it.
    """
    records = session.library.records()
    present = {
        record.paper.content_hash: key
        for key, record in records.items()
        if uploads.place_of(record.paper.source) or Path(record.paper.source).is_file()
    }
    found, refused = [], list(sources.refused)
    known: dict[str, Paper] = {}
    for source in sources.found:
        key = source.paper.key
        same = present.get(source.paper.content_hash)
        if same is not None and not (replaces and same == key):
            known[same] = source.paper
        elif key in records and not replaces and records[key].paper.content_hash != source.paper.content_hash:
            # A text and a PDF of one paper are merged.
            stored, converted = records[key].paper, ConvertedFiles(session.home.converted)
            read = read_as(Path(stored.source), stored, converted, choose_ocr(session.settings))
            both = None if isinstance(read, Refusal) else merge_text_with_pdf(read, source)
            if both is None:
                refused.append(Refusal(str(source.path), f"the library has another paper with the key {key}"))
            else:
                found.append(both)
        else:
            found.append(source)
    return replace(sources, found=tuple(found), refused=tuple(refused)), known


async def _update_entries(
    library: Library, bib: Path, known: Mapping[str, Paper], report: IngestReport
) -> tuple[list[str], list[str]]:
    """Update papers already in the library (`known`) from the `.bib`; returns the keys that changed, and warnings."""
    bibliography = await asyncio.to_thread(read_bibliography, bib)
    entries = await asyncio.to_thread(matching_entries, library, bibliography)
    entries |= {key: paper for key, paper in known.items() if has_own_entry(paper)}
    updated = await update_metadata(library, {key: entry for key, entry in entries.items() if key not in report.added})
    problems = [f"{item.path}: {item.reason}." for item in bibliography.refused if item not in report.refused]
    if not entries and not report.added:
        problems.append(f"{bib}: none of its entries is of a paper in the library.")
    return [key for key in updated if key not in report.updated], problems


@threaded
def apaper_sources(session: Session) -> dict[str, str]:
    """Return the file of each paper by its key."""
    return {paper.key: paper.source for paper in session.library.papers()}


@threaded
def aremove_orphans(session: Session, uploads: Uploads, among: Collection[str]) -> None:
    """Delete the files of these uploads that belong to no paper."""
    remove_orphans(session.library, uploads, among)


def stored_bytes(session: Session, *, without: Collection[str] = ()) -> int:
    """Total size of uploaded and fetched files, except the uploads `without`; blocks."""
    home = session.home
    stored = {**home.uploads().files(), **home.plots().files()}
    uploaded = sum(sum(files.values()) for upload, files in stored.items() if upload not in without)
    return uploaded + sum(file.stat().st_size for file in session.home.added.rglob("*") if file.is_file())
