"""Runs a request and saves its files, for sections, papers and questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

from ..citations.export.pandoc_formats import FORMATS as FORMATS, Format
from ..documents.sandbox import in_thread
from ..errors import InputError
from ..graph.run_events import OnEvent
from ..graph.session import Session
from ..runs.execution import begin_run as register_run, ignore, run_request as run_request
from ..runs.result_record import ResultRecord as ResultRecord, public_record
from ..runs.run_requests import (
    OnNotice,
    ResearchRequest as ResearchRequest,
    RunRequest as RunRequest,
    SectionRequest as SectionRequest,
)
from ..stores.backends import backend_of
from ..stores.run_register import RunRecord as RunRecord
from .arguments import parse_formats, require_choice
from .run_options import Depth, TextOptions


async def begin_run(request: RunRequest, session: Session) -> RunRecord:
    """Register a request as a new run, or find the run it repeats; raises `InputError` if invalid."""
    await request.require_valid(session, ignore)
    await session.require_papers()
    register = await asyncio.to_thread(backend_of(session.home).runs)
    return await asyncio.to_thread(register_run, request, session, register, ignore)


class RunOptions(TypedDict, total=False):
    """How a run is made and which files are written.

    Args:
        out: folder for the files; none are written if omitted.
        formats: `tex`, `docx` and `html`, written beside the markdown; they need `out`.
        fresh: write again, without reusing cached answers.
        force: replace files edited or not written by Citeloom; otherwise the new ones are numbered.
        strict: leave out sentences that fail a check instead of marking them; from the settings if omitted.
        depth: how much the text says; from the settings if omitted.
        page_images: put images of the cited PDF pages into the evidence report, which needs `out`.
    """

    out: Path | str | None
    formats: Sequence[Format] | Format
    fresh: bool
    force: bool
    strict: bool | None
    depth: Depth | None
    page_images: bool


async def run(
    request: RunRequest, session: Session, on_event: OnEvent | None, **options: Unpack[RunOptions]
) -> ResultRecord:
    """Run a request and write its files; returns public JSON. Raises `ArgumentError`, and as `run_and_save`."""
    if unknown := sorted(options.keys() - RunOptions.__annotations__.keys()):
        raise TypeError(f"unexpected option {unknown[0]!r}; there are {', '.join(RunOptions.__annotations__)}")
    given = TextOptions(strict=options.get("strict"), depth=options.get("depth"))
    if given.depth is not None:
        require_choice("depth", given.depth, Depth)
    out = options.get("out")
    wanted = parse_formats(options.get("formats", ()), out)
    output = None
    if out is not None:
        output = Output(Path(out), wanted, options.get("force", False), options.get("page_images", False))
    if changes := given.changes():
        session = session.with_settings(**changes)
    return (await run_and_save(request, session, output, on_event=on_event or ignore)).record


@dataclass(frozen=True, slots=True)
class Output:
    """The output folder of a run, the formats besides markdown, and whether edited files are replaced.

    With `page_images` the evidence report shows the cited PDF pages.
    """

    folder: Path
    formats: tuple[Format, ...] = ()
    force: bool = False
    page_images: bool = False


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A finished, saved run: its public JSON, and whether it was already finished before this call."""

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
    """Run or resume a request, or return its finished result.

    Writes files if `output` is given. Raises as `run_request` and `save_section` do.
    """
    if output is None:
        finished = await run_request(request, session, on_event=on_event, on_notice=on_notice)
        return SavedRun(public_record(finished.record), finished.finished_earlier)
    from ..citations.export.evidence_report import ReportImages  # not needed for an answer without files
    from ..runs.edited_text import with_edited_sections
    from ..runs.evidence_images import CitedPages, cited_pages, report_figures
    from ..runs.output_files import save

    async with _output_folder(output.folder):
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
async def _output_folder(folder: Path) -> AsyncIterator[None]:
    """Check that the folder is writable before anything is paid for; on invalid input removes new folders."""
    made = await asyncio.to_thread(_make, folder)
    try:
        yield
    except InputError:
        for path in made:
            with suppress(OSError):  # somebody else put something there
                path.rmdir()
        raise


def _make(folder: Path) -> list[Path]:
    """Create the folder; returns the folders that did not exist, innermost first. Raises `InputError`."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    from ..citations.export.section_files import prepare_folder

    prepare_folder(folder)
    return missing
