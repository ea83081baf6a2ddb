"""The run service: prepares the output folder, runs a request and saves its files, for the CLI and the Python API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..citations.export.evidence_report import ReportImages
from ..citations.export.pandoc_formats import Format
from ..citations.export.section_files import prepare_folder
from ..documents.sandbox import in_thread
from ..errors import InputError
from ..graph.run_events import OnEvent
from ..graph.session import Session
from .evidence_images import CitedPages, cited_pages
from .edited_text import with_edited_sections
from .execution import ignore, run_request
from .output_files import public_record, save
from .evidence_images import report_figures
from .result_record import ResultRecord
from .run_requests import OnNotice, RunRequest


@dataclass(frozen=True, slots=True)
class Output:
    """The output folder of a run, the formats besides markdown, and whether edited files are replaced.

    With `page_images` the evidence report shows the pages of PDFs that citations rest on.
    """

    folder: Path
    formats: tuple[Format, ...] = ()
    force: bool = False
    page_images: bool = False


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A finished run whose files are written: its public JSON, and whether an earlier run had finished it."""

    record: ResultRecord
    finished_earlier: bool


async def run_and_save(
    request: RunRequest,
    session: Session,
    output: Output | None = None,
    *,
    on_event: OnEvent = ignore,
    on_notice: OnNotice = ignore,
) -> SavedRun:
    """Run a request, resume it, or return what an earlier run finished.

    Files are written when there is an `output`. Raises as `run_request` and `save_section` do.
    """
    if output is None:
        finished = await run_request(request, session, on_event=on_event, on_notice=on_notice)
        return SavedRun(public_record(finished.record), finished.finished_earlier)
    async with _prepared(output.folder):
        finished = await run_request(request, session, on_event=on_event, on_notice=on_notice)
    record, edited = finished.record, dict[str, Path]()
    if "sections" in record and not output.force:
        record, edited = await with_edited_sections(record, output.folder, session)
    pages = await in_thread(cited_pages, record, session.library) if output.page_images else CitedPages()
    for line in pages.notices:
        on_notice(f"Note: {line}")
    figures = await asyncio.to_thread(report_figures, record, session.library)
    images = ReportImages(pages.images, figures)
    saved = await save(
        record, output.folder, output.formats, home=session.home, force=output.force, images=images, edited=edited
    )
    return SavedRun(saved, finished.finished_earlier)


@asynccontextmanager
async def _prepared(folder: Path) -> AsyncIterator[None]:
    """Check that the folder is writable before anything is paid for; removes new folders again on wrong input."""
    made = await asyncio.to_thread(_make, folder)
    try:
        yield
    except InputError:
        for path in made:
            with suppress(OSError):  # somebody else has put something there
                path.rmdir()
        raise


def _make(folder: Path) -> list[Path]:
    """Create the folder; returns the folders that did not exist, innermost first. Raises `InputError`."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    prepare_folder(folder)
    return missing
