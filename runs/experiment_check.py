"""Checks an experiment before use: invalid fields, missing fields, and its size."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final

from typing_extensions import TypedDict

from ..documents.sandbox import CallLimits, SandboxError, run_sandboxed
from ..errors import InputError
from ..experiment import (
    SECTION_KINDS,
    Experiment,
    ExperimentError,
    SectionKind,
    UnusableField,
    examine_experiment,
    experiment_warnings,
    limit_sizes,
    missing_fields,
    parse_experiment,
)

_LIMITS: Final = CallLimits(seconds=20.0, memory=1 << 30)
_HELP: Final = "Leave out anything that the paper does not need, such as a complete log."


class FieldProblem(TypedDict):
    """A problem of one field of a request; an empty `field` means the whole request."""

    field: str
    message: str


class ExperimentReport(TypedDict):
    """The problems of an experiment.

    `problems` block every section; `missing` lists, for each section, groups of fields that each need one given field.
    """

    problems: list[FieldProblem]
    missing: dict[SectionKind, list[tuple[str, ...]]]
    warnings: list[str]
    ready: list[SectionKind]


def check_experiment(
    data: object,
    with_plots: Callable[[Experiment], Experiment] = lambda experiment: experiment,
    left_out: Sequence[UnusableField] = (),
) -> ExperimentReport:
    """Check an `exp.json`; `with_plots` finds its images, `left_out` are problems of fields removed from `data`."""
    try:
        experiment = with_plots(parse_experiment(data, left_out=left_out))
    except InputError as error:
        usable, found = examine_experiment(data) if isinstance(data, dict) else (Experiment(), [])
        problems = [*left_out, *found]
        lacking = {kind: missing_fields(usable, kind, problems) for kind in SECTION_KINDS} if problems else {}
        issues = error.issues if isinstance(error, ExperimentError) else ()
        said: list[FieldProblem] = [
            {"field": field, "message": f"{wrong[0].upper()}{wrong[1:].removesuffix('.')}."} for field, wrong in issues
        ]
        whole: list[FieldProblem] = [{"field": "", "message": error.message.removeprefix("experiment: ")}]
        return {"problems": said or whole, "missing": lacking, "warnings": [], "ready": []}
    missing = {kind: missing_fields(experiment, kind) for kind in SECTION_KINDS}
    ready = [kind for kind, groups in missing.items() if not groups]
    return {"problems": [], "missing": missing, "warnings": list(experiment_warnings(experiment)), "ready": ready}


def shorten_body(body: bytes) -> tuple[bytes, list[UnusableField]]:
    """Shorten the `experiment` in a JSON request, in a separate process; blocks.

    Unusable fields are left out and returned with their problems. Raises `ExperimentError` if it is not an experiment.
    """
    try:
        result = run_sandboxed(shorten_body_here, _LIMITS, body.decode("utf-8", "surrogateescape"))
    except SandboxError as error:
        raise ExperimentError(f"experiment: cannot be read ({error}).", help=_HELP) from None
    if "refused" in result:
        raise ExperimentError(**result["refused"])
    left_out = [UnusableField(**problem) for problem in result["left_out"]]
    return str(result["body"]).encode("utf-8", "surrogateescape"), left_out


def shorten_body_here(body: str) -> dict[str, Any]:
    """Shorten the experiment in `body`, or return why it is `refused`; other content is returned unchanged."""
    try:
        content = json.loads(body)
        data, left_out = content["experiment"], list[UnusableField]()
        try:
            experiment = parse_experiment(data)
        except ExperimentError:
            if not isinstance(data, dict):
                raise
            usable, left_out = examine_experiment(data)
            experiment = limit_sizes(usable)
        content["experiment"] = experiment.model_dump(mode="json", exclude_unset=True)
    except ExperimentError as error:
        return {"refused": {"message": error.message, "help": error.help, "issues": error.issues}}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"body": body, "left_out": []}  # FastAPI reports it
    return {"body": json.dumps(content), "left_out": [asdict(problem) for problem in left_out]}
