"""Runs a request and saves its files: what sections, papers and questions share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from ..citations.export.pandoc_formats import FORMATS, Format
from ..graph.run_events import OnEvent
from ..graph.session import Session
from ..runs.execution import begin_run as register_run
from ..runs.execution import ignore, run_request
from ..runs.output_files import Output, SavedRun, run_and_save
from ..runs.run_requests import ResearchRequest, RunRequest, SectionRequest
from ..runs.result_record import ResultRecord
from ..stores.backends import backend_of
from ..stores.run_records import RunRecord
from .arguments import formats_of

__all__ = [
    "FORMATS",
    "Output",
    "OutputOptions",
    "ResearchRequest",
    "ResultRecord",
    "RunOptions",
    "RunRecord",
    "RunRequest",
    "SavedRun",
    "SectionRequest",
    "begin_run",
    "output_to",
    "run",
    "run_and_save",
    "run_request",
]


async def begin_run(request: RunRequest, session: Session) -> RunRecord:
    """Register a request as a new run, or find the run that it repeats; raises `InputError` for a wrong request."""
    await request.require_valid(session, ignore)
    await session.require_papers()
    register = await asyncio.to_thread(backend_of(session.home).runs)
    return await asyncio.to_thread(register_run, request, session, register, ignore)


class OutputOptions(TypedDict, total=False):
    """Which files are written; see `awrite_section`."""

    out: Path | str | None
    formats: Sequence[Format] | Format
    force: bool
    page_images: bool


class RunOptions(OutputOptions, total=False):
    """How a run is made and saved; see `awrite_section`."""

    fresh: bool
    strict: bool | None


def output_to(
    out: Path | str | None = None,
    formats: Sequence[Format] | Format = (),
    force: bool = False,
    page_images: bool = False,
) -> Output | None:
    """Where the files go; None when no folder is given. Raises `ArgumentError`."""
    wanted = formats_of(formats, out)
    return None if out is None else Output(Path(out), wanted, force, page_images)


async def run(
    request: RunRequest, library: Session, output: Output | None, strict: bool | None, on_event: OnEvent | None
) -> ResultRecord:
    """The public record of the request; raises as `run_and_save` does."""
    if strict is not None:
        library = library.with_settings(strict=strict)
    return (await run_and_save(request, library, output, on_event=on_event or ignore)).record
