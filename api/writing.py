"""Sections and papers from Python: `write_section`, `write_paper`, and their twins for async code."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from citeloom.api.blocking import run_blocking
from citeloom.citations.export import prepare_folder
from citeloom.citations.figures import with_plot_files
from citeloom.citations.formats import Format
from citeloom.experiment import Experiment, SectionKind, load_experiment, parse_experiment
from citeloom.graph.events import OnEvent
from citeloom.graph.identity import RunKind
from citeloom.graph.requests import SectionRequest
from citeloom.graph.run import run_section
from citeloom.graph.saving import public_record, save
from citeloom.graph.workbench import Workbench

__all__ = ["awrite_paper", "awrite_section", "write_paper", "write_section"]


async def awrite_section(
    kind: SectionKind,
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Workbench,
    *,
    out: Path | str | None = None,
    formats: Sequence[Format] = (),
    fresh: bool = False,
    strict: bool | None = None,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """Write a section, or go on with it; the result is the section's JSON.

    Args:
        kind: the section type.
        experiment: an experiment, its plain data, or the path of an `exp.json`.
        library: an open library.
        out: folder for the files; none are written when left out.
        formats: `tex`, `docx` and `html`, written beside the markdown.
        fresh: write anew, without answers of earlier runs.
        strict: leave out sentences that fail a check, instead of marking them; as the settings say when left out.
        on_event: told of each step, as `docs/events.md` says; `done` is what is returned.

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    return await _written(kind, experiment, library, out, formats, fresh, strict, on_event)


async def awrite_paper(
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Workbench,
    *,
    out: Path | str | None = None,
    formats: Sequence[Format] = (),
    fresh: bool = False,
    strict: bool | None = None,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """Write all six sections of a paper as one run, or go on with it; the result is the JSON of `paper --json`.

    Args:
        experiment: an experiment, its plain data, or the path of an `exp.json`.
        library: an open library.
        out: folder for the files of the paper and of each section; none are written when left out.
        formats: `tex`, `docx` and `html`, written of the whole paper beside the markdown.
        fresh: write anew, without answers of earlier runs.
        strict: leave out sentences that fail a check, instead of marking them; as the settings say when left out.
        on_event: told of each step.

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    return await _written("paper", experiment, library, out, formats, fresh, strict, on_event)


async def _written(
    kind: RunKind,
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Workbench,
    out: Path | str | None,
    formats: Sequence[Format],
    fresh: bool,
    strict: bool | None,
    on_event: OnEvent | None,
) -> dict[str, Any]:
    given, source = _experiment(experiment)
    if out is not None:
        await asyncio.to_thread(prepare_folder, Path(out))
    if strict is not None:
        library = library.with_settings(strict=strict)
    request = SectionRequest(kind, given, source, fresh)
    finished = await (run_section(request, library, on_event=on_event) if on_event else run_section(request, library))
    if out is None:
        return public_record(finished.record)
    return await save(finished.record, Path(out), formats)


def write_section(
    kind: SectionKind,
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Workbench,
    *,
    out: Path | str | None = None,
    formats: Sequence[Format] = (),
    fresh: bool = False,
    strict: bool | None = None,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """`awrite_section` for code without an event loop."""
    work = awrite_section(
        kind, experiment, library, out=out, formats=formats, fresh=fresh, strict=strict, on_event=on_event
    )
    return run_blocking(work, "awrite_section")


def write_paper(
    experiment: Experiment | dict[str, Any] | Path | str,
    library: Workbench,
    *,
    out: Path | str | None = None,
    formats: Sequence[Format] = (),
    fresh: bool = False,
    strict: bool | None = None,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """`awrite_paper` for code without an event loop."""
    work = awrite_paper(experiment, library, out=out, formats=formats, fresh=fresh, strict=strict, on_event=on_event)
    return run_blocking(work, "awrite_paper")


def _experiment(given: Experiment | dict[str, Any] | Path | str) -> tuple[Experiment, str]:
    if isinstance(given, Experiment):
        return given, "experiment"
    if isinstance(given, dict):
        return with_plot_files(parse_experiment(given), Path()), "experiment"
    return with_plot_files(load_experiment(given), Path(given).parent), str(given)
