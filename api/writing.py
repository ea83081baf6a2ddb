"""Sections and papers: `write_section` and `write_paper`, as calls and as streams of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Unpack

from ..citations.export.plot_figures import (
    MOST_BYTES as MOST_BYTES,
    image_problem as image_problem,
    image_type as image_type,
    with_plot_files as with_plot_files,
    without_plot_files as without_plot_files,
)
from ..experiment import (
    Experiment as Experiment,
    ExperimentError as ExperimentError,
    SectionKind,
    UnusableField as UnusableField,
    load_experiment,
    parse_experiment as parse_experiment,
)
from ..graph.run_events import Event, OnEvent
from ..graph.session import Session
from ..runs.experiment_check import (
    ExperimentReport as ExperimentReport,
    FieldProblem as FieldProblem,
    check_experiment as check_experiment,
    shorten_body as shorten_body,
)
from ..runs.result_record import ResultRecord
from ..runs.run_requests import RunKind, SectionRequest, required_kinds as required_kinds
from ..section_kinds import SECTION_KINDS
from ..stores.backends import backend_of
from ..stores.home import Home
from ..stores.run_register import PLOT_SET as PLOT_SET, PLOTS_KEPT as PLOTS_KEPT
from ..stores.uploads import Uploads
from .arguments import ArgumentError, one_of, require_writable, requires_open
from .blocking import blocking
from .running import RunOptions, run, stream_events

GivenExperiment = Experiment | dict[str, Any] | Path | str


@requires_open
async def awrite_section(
    session: Session,
    kind: SectionKind,
    experiment: GivenExperiment,
    *,
    on_event: OnEvent | None = None,
    **options: Unpack[RunOptions],
) -> ResultRecord:
    """Write or resume a section; returns its JSON.

    Args:
        kind: section type.
        experiment: an experiment, its plain data, or the path of an `exp.json`.
        on_event: called with each event (`docs/events.md`) except `done`, the return value.
        options: as in `RunOptions`: `out`, `formats`, `fresh` ...

    Raises `InputError`, `PausedError`, or another `CiteloomError`.
    """
    return await _write(session, one_of("section", kind, SECTION_KINDS), experiment, on_event, options)


@requires_open
async def awrite_paper(
    session: Session, experiment: GivenExperiment, *, on_event: OnEvent | None = None, **options: Unpack[RunOptions]
) -> ResultRecord:
    """Write or resume all six sections of a paper as one run; returns the JSON of `paper --json`.

    Takes what `awrite_section` takes; `out` gets the files of the paper and of each section, `formats` are those of the
    whole paper.
    """
    return await _write(session, "paper", experiment, on_event, options)


@requires_open
def astream_section(
    session: Session,
    kind: SectionKind,
    experiment: GivenExperiment,
    **options: Unpack[RunOptions],
) -> AsyncGenerator[Event, None]:
    """Write or resume a section as a stream of events; takes the options of `awrite_section`.

    Closing the stream early pauses the run; the same call resumes it. Reading it raises what
    `awrite_section` raises.
    """
    return stream_events(lambda emit: awrite_section(session, kind, experiment, **options, on_event=emit))


@requires_open
def astream_paper(
    session: Session, experiment: GivenExperiment, **options: Unpack[RunOptions]
) -> AsyncGenerator[Event, None]:
    """Write or resume a paper as a stream of events; takes the options of `awrite_paper`.

    Section drafts arrive one at a time in the order of writing, each after its "writing" step. Closing the stream
    early pauses the run. Reading it raises what `awrite_paper` raises.
    """
    return stream_events(lambda emit: awrite_paper(session, experiment, **options, on_event=emit))


def load_section_request(kind: RunKind, file: Path, *, fresh: bool = False) -> SectionRequest:
    """The request to write a section or a paper on the experiment in a file; blocks. Raises `ExperimentError`."""
    experiment = with_plot_files(load_experiment(file, *required_kinds(kind)), file.parent)
    return SectionRequest(kind, experiment, str(file), fresh)


def plot_files(home: Home) -> Uploads:
    """The uploaded plot images, by set."""
    return backend_of(home).plots()


def named_plot_sets(home: Home) -> set[str]:
    """The uploaded plot sets that runs use; blocks."""
    return backend_of(home).runs().plot_sets()


async def _write(
    session: Session, kind: RunKind, experiment: GivenExperiment, on_event: OnEvent | None, options: RunOptions
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
    request = SectionRequest(kind, given, source, options.get("fresh", False))
    return await run(request, session, on_event, **options)


write_section = requires_open(blocking(awrite_section))
write_paper = requires_open(blocking(awrite_paper))
