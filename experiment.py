"""The experiment behind a paper (`exp.json`): what was asked, done and found.

Unknown fields are kept and allowed. A wrong type, or a field that the asked section cannot do without, is one
clear error with the path of the field.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from citeloom.errors import InputError

SectionKind = Literal["introduction", "methods", "results", "discussion", "conclusion", "abstract"]
SECTION_KINDS: tuple[SectionKind, ...] = get_args(SectionKind)


class _Record(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class PaperConcept(_Record):
    """What the paper is about."""

    title: str = ""
    description: str = ""
    open_questions: list[str] = Field(default_factory=list)


class Hypothesis(_Record):
    """What was expected, and the combination of methods that tests it."""

    description: str = ""
    method_combination: str = ""


class ExecutionResult(_Record):
    """What the run of the experiment's code printed."""

    stdout: str = ""
    stderr: str = ""
    returncode: int | None = None


class Plot(_Record):
    """A figure of the experiment."""

    path: str = ""
    caption: str = ""


class Experiment(_Record):
    """One finished experiment; every text field may be empty unless the asked section needs it."""

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

    def text_at(self, path: str) -> str:
        """The text of a field by its path (`paper_concept.description`); lists are joined by blanks."""
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
        """All words, names of fields among them: what stands there is the user's own."""
        lines: list[str] = []
        _collect(json.loads(self.model_dump_json()), lines)
        return "\n".join(lines)

    def captions(self) -> list[str]:
        """The captions of all plots that have one."""
        return [plot.caption if isinstance(plot, Plot) else plot for plot in self.plots]


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
_MOST_BITS = 3_322  # of an integer with so many digits
_DEEPEST = 100  # levels of objects and lists
_LONGEST_PATH = 120  # characters
_SURROGATE = re.compile("[\ud800-\udfff]")
_HALF = ("holds half a character (a lone surrogate)", "Write the character whole, or leave it out.")
_FLATTER = "Put deep structures into a text field, or leave them out."

# A section can be written when each group has at least one field with text.
REQUIRED: dict[SectionKind, tuple[tuple[str, ...], ...]] = {
    "introduction": (
        ("paper_concept.description",),
        ("hypothesis.description", "paper_concept.open_questions"),
    ),
    "methods": (("experimental_plan", "hypothesis.method_combination"),),
    "results": (("results", "execution_result.stdout", "metrics"),),
    "discussion": (("reasoning", "results", "summary"),),
    "conclusion": (("paper_concept.description",), ("reasoning", "summary", "results")),
    "abstract": (("paper_concept.description",), ("summary", "results", "reasoning")),
}


def load_experiment(path: Path | str) -> Experiment:
    """Read `exp.json`; raises `ExperimentError` naming file, field and what was expected."""
    source = Path(path)
    try:
        if source.stat().st_size > _MOST_BYTES:
            raise ExperimentError(
                f"{source}: is larger than the {_MOST_BYTES // 1_000_000} MB that are read.",
                help="Leave out what the paper need not say, such as a whole log.",
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
        raise ExperimentError(f"{source}: is nested deeper than {_DEEPEST} levels.", help=_FLATTER) from None
    except json.JSONDecodeError as error:
        raise ExperimentError(f"{source}: not JSON ({error}).", help="Check the file with a JSON editor.") from error
    return parse_experiment(data, source=str(source))


def parse_experiment(data: object, *, source: str = "experiment") -> Experiment:
    """An experiment from plain data; raises `ExperimentError` naming `source` and the field."""
    if not isinstance(data, dict):
        raise ExperimentError(f"{source}: expected a JSON object at the top, got {type(data).__name__}.")
    _require_plain(data, source)
    try:
        return Experiment.model_validate(data)
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"] if part not in ("Plot", "str"))
        raise ExperimentError(
            f"{source}: field {field}: {problem['msg'].lower()}, got {type(problem['input']).__name__}."
        ) from error


def _integer(digits: str) -> int | float:
    """An integer of JSON; one too long for Python to write down again is taken for infinite, and refused as that."""
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


def _require_plain(data: dict[Any, Any], source: str) -> None:
    """Raise `ExperimentError` for the first value that could not be kept, searched or written as it is."""
    waiting: list[tuple[Any, str, int]] = [(data, "", 0)]
    while waiting:
        value, path, depth = waiting.pop()
        wrong = _wrong_with(value, depth)
        if wrong:
            problem, remedy = wrong
            raise ExperimentError(f"{source}: field {_named(path)}: {problem}.", help=remedy)
        if isinstance(value, dict):
            inner = [(item, f"{path}.{name}" if path else str(name), name) for name, item in value.items()]
            for _, place, name in inner:
                if _SURROGATE.search(str(name)):
                    raise ExperimentError(f"{source}: field {_named(place)}: {_HALF[0]}.", help=_HALF[1])
            waiting += [(item, place, depth + 1) for item, place, _ in reversed(inner)]
        elif isinstance(value, list | tuple):
            waiting += [(item, f"{path}[{n}]", depth + 1) for n, item in reversed(list(enumerate(value)))]


def _wrong_with(value: Any, depth: int) -> tuple[str, str] | None:
    """What is wrong with one value, and the remedy; None when nothing is."""
    if depth > _DEEPEST:
        return f"is nested deeper than {_DEEPEST} levels", _FLATTER
    if isinstance(value, str) and _SURROGATE.search(value):
        return _HALF
    if isinstance(value, float) and not math.isfinite(value):
        return "is no finite number, or has too many digits", "Write null, or the number as text."
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _MOST_BITS:
        return f"has more than {_MOST_DIGITS} digits", "Write it as text, or in powers of ten."
    return None


def _named(path: str) -> str:
    """The path of a field as a message bears it."""
    plain = _SURROGATE.sub("\ufffd", path)
    return plain if len(plain) <= _LONGEST_PATH else f"{plain[:_LONGEST_PATH]}…"


def require_fields(experiment: Experiment, kind: SectionKind, *, source: str = "experiment") -> None:
    """Raise `ExperimentError` when a field is empty that a section of `kind` cannot do without."""
    for group in REQUIRED[kind]:
        if not any(experiment.text_at(path).strip() for path in group):
            fields = " or ".join(group)
            raise ExperimentError(f"{source}: field {fields}: is missing or empty, but {kind} needs it.")
