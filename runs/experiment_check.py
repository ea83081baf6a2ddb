"""Checks an experiment before use: wrong fields, fields that sections lack, and its size."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ..documents.sandbox import CallLimits, SandboxError, sandboxed
from ..errors import InputError
from ..experiment import (
    SECTION_KINDS,
    Experiment,
    ExperimentError,
    SectionKind,
    examine_experiment,
    experiment_warnings,
    missing_fields,
    parse_experiment,
)

_LIMITS: Final = CallLimits(seconds=20.0, memory=1 << 30)
_HELP: Final = "Leave out what the paper does not need, such as a complete log."


@dataclass(frozen=True, slots=True)
class FieldIssue:
    """A problem of a field; an empty path means the whole."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class ExperimentCheck:
    """`problems` block all sections; `missing` lists for each section kind the groups of fields that lack one."""

    problems: tuple[FieldIssue, ...]
    missing: dict[SectionKind, tuple[tuple[str, ...], ...]]
    warnings: tuple[str, ...]

    @property
    def ready(self) -> tuple[SectionKind, ...]:
        """The section kinds that can be written."""
        return () if self.problems else tuple(kind for kind, groups in self.missing.items() if not groups)


def check_experiment(
    data: object, with_plots: Callable[[Experiment], Experiment] = lambda experiment: experiment
) -> ExperimentCheck:
    """Check the content of an `exp.json`; `with_plots` finds its images, and only its errors are raised."""
    try:
        experiment = with_plots(parse_experiment(data))
    except InputError as error:
        usable, problems = examine_experiment(data) if isinstance(data, dict) else (Experiment(), [])
        lacking = {kind: tuple(missing_fields(usable, kind, problems)) for kind in SECTION_KINDS} if problems else {}
        return ExperimentCheck(tuple(_issues(error)), lacking, ())
    missing = {kind: tuple(missing_fields(experiment, kind)) for kind in SECTION_KINDS}
    return ExperimentCheck((), missing, tuple(experiment_warnings(experiment)))


def _issues(error: InputError) -> list[FieldIssue]:
    if not isinstance(error, ExperimentError) or not error.issues:
        return [FieldIssue("", error.message.removeprefix("experiment: "))]
    return [FieldIssue(field, f"{wrong[0].upper()}{wrong[1:].removesuffix('.')}.") for field, wrong in error.issues]


def shorten_body(body: bytes) -> bytes:
    """Shorten the `experiment` in a JSON request, in a separate process; blocks.

    Raises `ExperimentError` if the experiment cannot be used.
    """
    try:
        result = sandboxed(shortened_body, _LIMITS, body.decode("utf-8", "surrogateescape"))
    except SandboxError as error:
        raise ExperimentError(f"experiment: cannot be read: reading it {error}.", help=_HELP) from None
    if "refused" in result:
        raise ExperimentError(**result["refused"])
    return str(result["body"]).encode("utf-8", "surrogateescape")


def shortened_body(body: str) -> dict[str, Any]:
    """Shorten the experiment in `body`, or say why it is `refused`; returns anything but JSON unchanged."""
    try:
        content = json.loads(body)
        content["experiment"] = parse_experiment(content["experiment"]).model_dump(mode="json", exclude_unset=True)
    except ExperimentError as error:
        return {"refused": {"message": error.message, "help": error.help, "issues": error.issues}}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"body": body}  # FastAPI reports it
    return {"body": json.dumps(content)}
