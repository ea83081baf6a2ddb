"""Sections and papers: `write_section` and `write_paper`, as calls and as streams of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

from ..citations.export.plot_figures import MOST_BYTES, image_problem, image_type, with_plot_files, without_plot_files
from ..experiment import Experiment, ExperimentError, SectionKind, UnusableField, load_experiment, parse_experiment
from ..graph.run_events import Event, OnEvent
from ..graph.session import Session
from ..runs.experiment_check import ExperimentReport, FieldProblem, check_experiment, shorten_body
from ..runs.result_record import ResultRecord
from ..runs.run_requests import RunKind, SectionRequest, required_kinds
from ..section_kinds import SECTION_KINDS, SECTIONS
from ..stores.run_register import PLOT_SET, PLOTS_KEPT
from .arguments import ArgumentError, one_of, one_or_more, require_writable
from .blocking import blocking
from .evidence_tables import load_table_named
from .run_options import TableSources
from .running import RunOptions, run, stream_events

GivenExperiment = Experiment | dict[str, Any] | Path | str


class WritingOptions(RunOptions, total=False):
    """How a section or a paper is written, and what it rests on.

    Args:
        tables: ids or titles of evidence tables whose cells an introduction, a discussion or a paper may cite.
        show_tables: put these tables into the text.
    """

    tables: Sequence[str] | str
    show_tables: bool


async def awrite_section(
    session: Session,
    kind: SectionKind,
    experiment: GivenExperiment,
    *,
    on_event: OnEvent | None = None,
    **options: Unpack[WritingOptions],
) -> ResultRecord:
    """Write or resume a section; returns its JSON.

    Args:
        kind: section type.
        experiment: an experiment, its plain data, or the path of an `exp.json`.
        on_event: called with each event (`docs/events.md`) except `done`, the return value.
        options: as in `WritingOptions`: `out`, `formats`, `fresh`, `tables` ...

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    return await _write(session, one_of("section", kind, SECTION_KINDS), experiment, on_event, options)


async def awrite_paper(
    session: Session, experiment: GivenExperiment, *, on_event: OnEvent | None = None, **options: Unpack[WritingOptions]
) -> ResultRecord:
    """Write or resume all six sections of a paper as one run, as `awrite_section`; returns the JSON of `paper --json`.

    `out` gets the files of the paper and of each section, `formats` are those of the whole paper.
    """
    return await _write(session, "paper", experiment, on_event, options)


def astream_section(
    session: Session, kind: SectionKind, experiment: GivenExperiment, **options: Unpack[WritingOptions]
) -> AsyncGenerator[Event, None]:
    """`awrite_section` as a stream of events; closing it early pauses the run, and the same call resumes it."""
    return stream_events(lambda emit: awrite_section(session, kind, experiment, **options, on_event=emit))


def astream_paper(
    session: Session, experiment: GivenExperiment, **options: Unpack[WritingOptions]
) -> AsyncGenerator[Event, None]:
    """Write or resume a paper as a stream of events, with the options and errors of `awrite_paper`.

    Drafts arrive one at a time in writing order, each after its "writing" step. Closing early pauses the run.
    """
    return stream_events(lambda emit: awrite_paper(session, experiment, **options, on_event=emit))


def load_section_request(kind: RunKind, file: Path, *, fresh: bool = False) -> SectionRequest:
    """The request to write a section or a paper on the experiment in a file; blocks. Raises `ExperimentError`."""
    experiment = with_plot_files(load_experiment(file, *required_kinds(kind)), file.parent)
    return SectionRequest(kind, experiment, str(file), fresh)


async def with_tables(request: SectionRequest, session: Session, given: TableSources) -> SectionRequest:
    """The request with the evidence tables that it may cite, as they are now.

    Raises `ArgumentError` for a section that weighs no studies, and `UnknownTableError`.
    """
    kind = request.kind
    if given.tables and kind != "paper" and not SECTIONS[kind].weighs_studies:
        weighing = " and ".join(name for name, spec in SECTIONS.items() if spec.weighs_studies)
        raise ArgumentError(f"tables: {kind} takes no evidence tables; {weighing} do.")
    named = [await load_table_named(session, name, shown=given.show_tables) for name in given.tables]
    return replace(request, tables=tuple({table["table_id"]: table for table in named}.values()))


async def _write(
    session: Session, kind: RunKind, experiment: GivenExperiment, on_event: OnEvent | None, options: WritingOptions
) -> ResultRecord:
    require_writable(session)
    source, needed = "experiment", required_kinds(kind)
    if isinstance(experiment, Experiment):
        given = experiment
    elif isinstance(experiment, dict):
        given = with_plot_files(parse_experiment(experiment, *needed), Path())
    elif isinstance(experiment, Path | str):
        given, source = with_plot_files(load_experiment(experiment, *needed), Path(experiment).parent), str(experiment)
    else:
        raise ArgumentError(
            f"experiment: expected an experiment, its plain data or a path, got {type(experiment).__name__}."
        )
    tables = TableSources(tables=one_or_more(options.pop("tables", ())), show_tables=options.pop("show_tables", False))
    request = SectionRequest(kind, given, source, options.get("fresh", False))
    return await run(await with_tables(request, session, tables), session, on_event, **cast(RunOptions, options))


write_section = blocking(awrite_section)
write_paper = blocking(awrite_paper)
