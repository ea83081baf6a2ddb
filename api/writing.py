"""`write_section` and `write_paper`: sections and papers from Python, sync and async."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..citations.export.figures import with_plot_files
from ..citations.export.pandoc_formats import Format
from ..experiment import Experiment, SectionKind, load_experiment, parse_experiment
from ..graph.events import OnEvent
from ..graph.session import Session
from ..runs.fingerprint import RunKind
from ..runs.result_record import ResultRecord
from ..runs.section_request import SectionRequest
from .arguments import ArgumentError, library_first, require_writable, section_kind
from .blocking import blocking
from .running import output_to, run

__all__ = ["awrite_paper", "awrite_section", "write_paper", "write_section"]


@library_first
async def awrite_section(
    library: Session,
    kind: SectionKind,
    experiment: Experiment | dict[str, Any] | Path | str,
    *,
    out: Path | str | None = None,
    formats: Sequence[Format] | Format = (),
    fresh: bool = False,
    force: bool = False,
    strict: bool | None = None,
    page_images: bool = False,
    on_event: OnEvent | None = None,
) -> ResultRecord:
    """Write a section, or resume it; the result is the section's JSON.

    Args:
        library: an open library.
        kind: the section type.
        experiment: an experiment, its plain data, or the path of an `exp.json`.
        out: folder for the files; none are written if omitted.
        formats: `tex`, `docx` and `html`, written beside the markdown; they need `out`.
        fresh: write again, without reusing cached answers.
        force: replace files that were edited, or that Citeloom did not write; without it the new ones get a number.
        strict: leave out sentences that fail a check, instead of marking them; as the settings say if omitted.
        page_images: put images of the cited PDF pages into the evidence report, which needs `out`.
        on_event: called with each event, as `docs/events.md` says; `done` is what is returned.

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    return await _written(
        section_kind(kind), experiment, library, out, formats, fresh, force, strict, page_images, on_event
    )


@library_first
async def awrite_paper(
    library: Session,
    experiment: Experiment | dict[str, Any] | Path | str,
    *,
    out: Path | str | None = None,
    formats: Sequence[Format] | Format = (),
    fresh: bool = False,
    force: bool = False,
    strict: bool | None = None,
    page_images: bool = False,
    on_event: OnEvent | None = None,
) -> ResultRecord:
    """Write all six sections of a paper as one run, or resume it; the result is the JSON of `paper --json`.

    Args:
        library: an open library.
        experiment: an experiment, its plain data, or the path of an `exp.json`.
        out: folder for the files of the paper and of each section; none are written if omitted.
        formats: `tex`, `docx` and `html`, written of the whole paper beside the markdown; they need `out`.
        fresh: write again, without reusing cached answers.
        force: replace files that were edited, or that Citeloom did not write; without it the new ones get a number.
        strict: leave out sentences that fail a check, instead of marking them; as the settings say if omitted.
        page_images: put images of the cited PDF pages into the evidence report, which needs `out`.
        on_event: called with each event.

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    return await _written("paper", experiment, library, out, formats, fresh, force, strict, page_images, on_event)


async def _written(
    kind: RunKind,
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Session,
    out: Path | str | None,
    formats: Sequence[Format] | Format,
    fresh: bool,
    force: bool,
    strict: bool | None,
    page_images: bool,
    on_event: OnEvent | None,
) -> ResultRecord:
    require_writable(library)
    given, source = _experiment(experiment)
    output = output_to(out, formats, force=force, page_images=page_images)
    return await run(SectionRequest(kind, given, source, fresh), library, output, strict, on_event)


write_section = library_first(blocking(awrite_section))
write_paper = library_first(blocking(awrite_paper))


def _experiment(given: Experiment | dict[str, Any] | Path | str) -> tuple[Experiment, str]:
    if isinstance(given, Experiment):
        return given, "experiment"
    if isinstance(given, dict):
        return with_plot_files(parse_experiment(given), Path()), "experiment"
    if not isinstance(given, Path | str):
        raise ArgumentError(
            f"experiment: expected an experiment, its plain data or a path, got {type(given).__name__}.",
        )
    return with_plot_files(load_experiment(given), Path(given).parent), str(given)
