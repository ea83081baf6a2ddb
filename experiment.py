"""The experiment behind a paper (`exp.json`): its model, loading and validation.

Unknown fields are allowed and kept. A wrong type, or a missing field that the section requires, raises one error with
the path of the field.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import InputError
from .experiment_forms import usual_forms
from .section_kinds import SECTION_KINDS as SECTION_KINDS
from .section_kinds import SECTIONS
from .section_kinds import SectionKind as SectionKind

PLOT_FILE = "_file"  # key of a plot's image path; set by callers that know the folder of exp.json


_FIGURE_NUMBER = re.compile(r"\b(?:fig\.|figures?|figs\.?)\s*\d", re.IGNORECASE)
_PROSE = (
    "paper_concept.description",
    "hypothesis.description",
    "experimental_plan",
    "verdict",
    "reasoning",
    "results",
    "summary",
)


class _Record(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class PaperConcept(_Record):
    """What the paper is about."""

    title: str = ""
    description: str = ""
    open_questions: list[str] = Field(default_factory=list)


class Hypothesis(_Record):
    """The expectation, and the combination of methods that tests it."""

    description: str = ""
    method_combination: str = ""


class ExecutionResult(_Record):
    """The output of the experiment's code."""

    stdout: str = ""
    stderr: str = ""
    returncode: int | None = None


class Plot(_Record):
    """A figure of the experiment."""

    path: str = ""
    caption: str = ""


class Experiment(_Record):
    """A finished experiment; any text field may be empty unless the requested section requires it."""

    paper_concept: PaperConcept = Field(default_factory=PaperConcept)
    hypothesis: Hypothesis = Field(default_factory=Hypothesis)
    experimental_plan: str = ""
    experiment_code: str = ""
    execution_result: ExecutionResult = Field(default_factory=ExecutionResult)
    metrics: dict[str, Any] = Field(default_factory=dict)
    plots: list[Plot | str] = Field(default_factory=list)
    verdict: str = ""
    reasoning: str = ""
    results: str = ""
    summary: str = ""

    @property
    def failure(self) -> str:
        """Why the experiment's run counts as failed, in a few words; empty if it does not."""
        run = {"returncode": self.execution_result.returncode, **(self.execution_result.model_extra or {})}
        return _exited(run) or _flagged(run) or _exited(self.model_extra or {})

    def text_at(self, path: str) -> str:
        """The text of a field given by path (`paper_concept.description`); lists are joined by blanks."""
        value: Any = self
        for name in path.split("."):
            value = getattr(value, name)
        if isinstance(value, dict):
            return "; ".join(f"{name.replace('_', ' ')}: {number}" for name, number in value.items())
        if isinstance(value, list):
            return " ".join(item.caption if isinstance(item, Plot) else str(item) for item in value)
        return str(value)

    def leaves(self) -> list[tuple[str, Any]]:
        """Every value with its JSON path (`metrics.auroc[2]`), in order; a list comes before its items."""
        return list(_leaves(json.loads(self.model_dump_json()), ""))

    def words(self) -> str:
        """All text including field names, one paragraph per value: the user's own words."""
        return self._words

    @cached_property
    def _words(self) -> str:
        lines: list[str] = []
        _collect(json.loads(self.model_dump_json()), lines)
        return "\n\n".join(lines)

    def found_plots(self) -> list[tuple[int, Plot]]:
        """The plots whose file was found, with their places in `plots`; only these can be shown and mentioned."""
        return [
            (place, plot)
            for place, plot in enumerate(self.plots)
            if isinstance(plot, Plot) and (plot.model_extra or {}).get(PLOT_FILE)
        ]

    def figures(self) -> list[tuple[int, Plot]]:
        """The found plots with their numbers, without gaps.

        If the experiment's own words mention figures by number, numbers are places in `plots`, so that these words stay
        right.
        """
        found = self.found_plots()
        own_words = [*map(self.text_at, _PROSE), *(plot.caption for _, plot in found)]
        if any(map(_FIGURE_NUMBER.search, own_words)):
            return [(place + 1, plot) for place, plot in found]
        return [(number, plot) for number, (_, plot) in enumerate(found, 1)]


_FAILED_STATES = frozenset(
    "failed failure fail error errored crashed timeout timed_out aborted killed cancelled canceled".split()
)
_EXIT_CODES = ("returncode", "return_code", "exit_code", "exitcode")
_FLAGS = (("success", False), ("succeeded", False), ("failed", True), ("timed_out", True))


def _exited(fields: Mapping[str, Any]) -> str:
    """The exit code or status among the fields of a run that says it failed."""
    for name in _EXIT_CODES:
        code = fields.get(name)
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            return f"{name} {code}"
    status = fields.get("status")
    if isinstance(status, str) and re.sub(r"[\s-]+", "_", status.strip().lower()) in _FAILED_STATES:
        return f"status {' '.join(status.split())}"
    return ""


def _flagged(fields: Mapping[str, Any]) -> str:
    """The flag among the fields of a run that says it failed."""
    return next((f"{name} {str(bad).lower()}" for name, bad in _FLAGS if fields.get(name) is bad), "")


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            step = name if re.fullmatch(r"[^\W\d]\w*", name) else f"[{json.dumps(name, ensure_ascii=False)}]"
            yield from _leaves(item, f"{path}.{step}" if path and not step.startswith("[") else f"{path}{step}")
        return
    yield path, value
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")


def _collect(value: Any, lines: list[str]) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            lines.append(str(name))
            _collect(item, lines)
    elif isinstance(value, list):
        for item in value:
            _collect(item, lines)
    elif value is not None:
        lines.append(str(value))


class ExperimentError(InputError):
    """`exp.json` cannot be read or lacks what the section needs."""

    default_help = "See '{command} --help' for the fields of exp.json."


_MOST_BYTES = 50_000_000
_MOST_DIGITS = 1_000
_MOST_BITS = 3_322  # of an integer with the maximum number of digits
_MAX_DEPTH = 100  # levels of objects and lists
_MOST_PROBLEMS = 10  # in one message
_LONGEST_PATH = 120  # characters
_LONGEST_NAME = 40  # characters of an unknown field that are compared
_ALIKE = 0.8
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE_SURROGATE = ("contains half a character (a lone surrogate)", "Write the whole character, or leave it out.")
_FLATTER = "Put deep structures into a text field, or leave them out."

# What a section needs and a failed run does not give.
OUTCOMES = frozenset({"results", "execution_result.stdout", "metrics", "reasoning", "summary"})


def load_experiment(path: Path | str) -> Experiment:
    """Read `exp.json`; raises `ExperimentError` naming file, field and what was expected."""
    source = Path(path)
    try:
        if source.stat().st_size > _MOST_BYTES:
            raise ExperimentError(
                f"{source}: is larger than the {_MOST_BYTES // 1_000_000} MB that are read.",
                help="Leave out what the paper does not need, such as a complete log.",
            )
        raw = source.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ExperimentError(f"{source}: no such file.", help="Give the path of your exp.json to --exp.") from None
    except IsADirectoryError:
        raise ExperimentError(f"{source}: is a folder, not a JSON file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{source}: cannot be read as UTF-8 text ({error}).") from error
    try:
        data = json.loads(raw, parse_int=_integer)
    except RecursionError:
        raise ExperimentError(f"{source}: is nested deeper than {_MAX_DEPTH} levels.", help=_FLATTER) from None
    except json.JSONDecodeError as error:
        raise ExperimentError(f"{source}: not JSON ({error}).", help="Check the file with a JSON editor.") from error
    return parse_experiment(data, source=str(source))


def parse_experiment(data: object, *, source: str = "experiment") -> Experiment:
    """Validate an experiment from plain data; raises `ExperimentError` naming `source` and the field."""
    if not isinstance(data, dict):
        raise ExperimentError(f"{source}: expected a JSON object at the top, got {type(data).__name__}.")
    _require_plain(data, source)
    try:
        return _without_outcome_of_failed_run(Experiment.model_validate(usual_forms(data)))
    except ValidationError as error:
        issues = "; ".join(f"field {field}: {wrong}" for field, wrong in field_problems(error)[:_MOST_PROBLEMS])
        raise ExperimentError(f"{source}: {issues}.") from error


def field_problems(error: ValidationError) -> list[tuple[str, str]]:
    """The path of each field with a wrong type, and what is wrong."""
    found = {
        _named(".".join(str(part) for part in item["loc"] if part not in ("Plot", "str"))): (
            f"{item['msg'].lower()}, got {type(item['input']).__name__}"
        )
        for item in reversed(error.errors())
    }
    return list(reversed(found.items()))


def _without_outcome_of_failed_run(experiment: Experiment) -> Experiment:
    """The experiment without the outcome of a failed run, whose numbers are not results."""
    if not experiment.failure:
        return experiment
    run = experiment.execution_result.model_copy(update={"stdout": ""})
    return experiment.model_copy(
        update={"execution_result": run, "metrics": {}, "plots": [], "results": "", "verdict": ""}
    )


def _integer(digits: str) -> int | float:
    """Parse a JSON integer; one with too many digits for Python to print becomes infinite, and is refused as such."""
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


def _require_plain(data: dict[Any, Any], source: str) -> None:
    """Raise `ExperimentError` for the first value that cannot be stored, searched or written unchanged."""
    waiting: list[tuple[Any, str, int]] = [(data, "", 0)]
    while waiting:
        value, path, depth = waiting.pop()
        wrong = _problem_of(value, depth)
        if wrong:
            problem, remedy = wrong
            raise ExperimentError(f"{source}: field {_named(path)}: {problem}.", help=remedy)
        if isinstance(value, dict):
            inner = [(item, f"{path}.{name}" if path else str(name), name) for name, item in value.items()]
            for _, place, name in inner:
                if _SURROGATE.search(str(name)):
                    raise ExperimentError(
                        f"{source}: field {_named(place)}: {_LONE_SURROGATE[0]}.", help=_LONE_SURROGATE[1]
                    )
            waiting += [(item, place, depth + 1) for item, place, _ in reversed(inner)]
        elif isinstance(value, list | tuple):
            waiting += [(item, f"{path}[{n}]", depth + 1) for n, item in reversed(list(enumerate(value)))]


def _problem_of(value: Any, depth: int) -> tuple[str, str] | None:
    """The problem with a value and its remedy; None if it is valid."""
    if depth > _MAX_DEPTH:
        return f"is nested deeper than {_MAX_DEPTH} levels", _FLATTER
    if isinstance(value, str) and _SURROGATE.search(value):
        return _LONE_SURROGATE
    if isinstance(value, float) and not math.isfinite(value):
        return "is not a finite number, or has too many digits", "Write null, or the number as text."
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _MOST_BITS:
        return f"has more than {_MOST_DIGITS} digits", "Write it as text, or in powers of ten."
    return None


def _named(path: str) -> str:
    """The path of a field, shortened for messages."""
    plain = _SURROGATE.sub("\ufffd", path)
    return plain if len(plain) <= _LONGEST_PATH else f"{plain[:_LONGEST_PATH]}…"


def require_fields(experiment: Experiment, *kinds: SectionKind, source: str = "experiment") -> None:
    """Raise `ExperimentError` with all empty fields that sections of these kinds require.

    A failed run is an outcome too: the section reports it instead of results.
    """
    missing = [
        f"field {' or '.join(group)}: is missing or empty, but {kind} needs it"
        for kind in kinds
        for group in missing_fields(experiment, kind)
    ]
    if missing:
        near = "".join(f" Did you mean {known} by {found}?" for found, known in near_fields(experiment))
        raise ExperimentError(f"{source}: {'; '.join(missing)}.{near}")


def missing_fields(experiment: Experiment, kind: SectionKind) -> list[tuple[str, ...]]:
    """The groups of fields of which a section of `kind` needs one and has none."""
    return [
        group
        for group in SECTIONS[kind].required
        if not any(experiment.text_at(path).strip() for path in group)
        and not (experiment.failure and OUTCOMES.intersection(group))
    ]


def near_fields(experiment: Experiment) -> list[tuple[str, str]]:
    """Paths of unknown fields that look misspelt, each with the field that was probably meant."""
    records: list[tuple[str, _Record]] = [("", experiment)]
    records += [(f"{name}.", getattr(experiment, name)) for name in ("paper_concept", "hypothesis", "execution_result")]
    records += [(f"plots[{n}].", plot) for n, plot in enumerate(experiment.plots) if isinstance(plot, Plot)]
    return [
        (f"{path}{name}", f"{path}{near}")
        for path, record in records
        for name in record.model_extra or {}
        if not name.startswith("_") and (near := _near(name, record))
    ]


def _near(name: str, record: _Record) -> str:
    known = {field.replace("_", ""): field for field in type(record).model_fields}
    found = difflib.get_close_matches(re.sub(r"[\W_]", "", name[:_LONGEST_NAME]).lower(), known, n=1, cutoff=_ALIKE)
    return known[found[0]] if found else ""


def experiment_warnings(experiment: Experiment) -> list[str]:
    """Warnings about `exp.json` itself: misspelt fields, missing images, and a failed run."""
    warnings = [
        f"exp.json: unknown field {_named(found)} is ignored: did you mean {known}?"
        for found, known in near_fields(experiment)
    ]
    found = {place for place, _ in experiment.found_plots()}
    paths = [plot.path if isinstance(plot, Plot) else plot for plot in experiment.plots]
    missing = [path for place, path in enumerate(paths) if path and place not in found]
    if missing:
        named = _named(", ".join(map(repr, missing)))
        warnings.append(
            f"exp.json: plots: no image (png, jpg, svg, pdf, webp) next to it for {named}: "
            "the text does not mention them."
        )
    if experiment.failure:
        warnings.append(
            f"exp.json: the run of the experiment failed ({experiment.failure}): results, metrics, stdout, plots and "
            "verdict are not used; give those of a run that ended well."
        )
    return warnings
