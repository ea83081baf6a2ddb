"""Checks an experiment before anything is written from it: wrong fields, what each section lacks, and oddities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InputError
from ..experiment import (
    SECTION_KINDS,
    Experiment,
    ExperimentError,
    SectionKind,
    experiment_warnings,
    missing_fields,
    parse_experiment,
)


@dataclass(frozen=True, slots=True)
class FieldIssue:
    """What is wrong with a field; an empty path means the whole."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class ExperimentCheck:
    """`problems` prevent all sections; `missing` are the fields that each kind of section lacks, one of each group."""

    problems: tuple[FieldIssue, ...]
    missing: dict[SectionKind, tuple[tuple[str, ...], ...]]
    warnings: tuple[str, ...]

    @property
    def ready(self) -> tuple[SectionKind, ...]:
        """The kinds of sections that can be written."""
        return () if self.problems else tuple(kind for kind, groups in self.missing.items() if not groups)


def check_experiment(
    data: object, with_plots: Callable[[Experiment], Experiment] = lambda experiment: experiment
) -> ExperimentCheck:
    """Check the content of an `exp.json`; raises only what `with_plots`, which finds the images of its plots, does."""
    try:
        experiment = with_plots(parse_experiment(data))
    except InputError as error:
        return ExperimentCheck(tuple(_issues(error)), {}, ())
    missing = {kind: tuple(missing_fields(experiment, kind)) for kind in SECTION_KINDS}
    return ExperimentCheck((), missing, tuple(experiment_warnings(experiment)))


def _issues(error: InputError) -> list[FieldIssue]:
    if not isinstance(error, ExperimentError) or not error.issues:
        return [FieldIssue("", error.message.removeprefix("experiment: "))]
    return [FieldIssue(field, f"{wrong[0].upper()}{wrong[1:].removesuffix('.')}.") for field, wrong in error.issues]
