"""The experiment behind a paper (`exp.json`): its model, loading and validation.

Unknown fields are allowed and kept. One error lists everything that is wrong: fields of the wrong type, and missing
fields that the section requires.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from .errors import InputError
from .experiment_forms import as_metrics, as_plots, as_text, as_whole_number, move_fields, shorten_json
from .invalid_values import describe_invalid, field_path, kind_of_value
from .plurals import join_words
from .section_kinds import SECTION_KINDS as SECTION_KINDS, SECTIONS, SectionKind as SectionKind

PLOT_FILE = "_file"  # key of a plot's image path; set by callers that know the folder of exp.json
SHORTENED = "_shortened"  # key of the list of shortened fields; not the user's words


_FIGURE_NUMBER = re.compile(r"\b(?:fig\.|figures?|figs\.?)\s*\d", re.IGNORECASE)
_PROSE = (
    *("paper_concept.description", "hypothesis.description"),
    *("experimental_plan", "verdict", "reasoning", "results", "summary"),
)


Text = Annotated[str, BeforeValidator(as_text)]


class _Record(BaseModel):
    """Fields of an experiment; plain text in place of the record becomes the field `main`."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    main: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        """Drop known fields that are null, which count as missing."""
        given = {cls.main: value} if isinstance(value, str) and cls.main else value
        if not isinstance(given, dict):
            return given
        return {name: item for name, item in given.items() if item is not None or name not in cls.model_fields}


class PaperConcept(_Record):
    """What the paper is about."""

    main = "description"
    title: Text = ""
    description: Text = ""
    open_questions: Annotated[
        list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
    ] = Field(default_factory=list)


class Hypothesis(_Record):
    """The expectation, and the combination of methods that tests it."""

    main = "description"
    description: Text = ""
    method_combination: Text = ""


class ExecutionResult(_Record):
    """The output of the experiment's code."""

    main = "stdout"
    stdout: Text = ""
    stderr: Text = ""
    returncode: Annotated[int | None, BeforeValidator(as_whole_number)] = None


class Plot(_Record):
    """A figure of the experiment."""

    path: str = ""
    caption: str = ""


class Experiment(_Record):
    """A finished experiment; any text field may be empty unless the requested section requires it."""

    paper_concept: PaperConcept = Field(default_factory=PaperConcept)
    hypothesis: Hypothesis = Field(default_factory=Hypothesis)
    experimental_plan: Text = ""
    experiment_code: Text = ""
    execution_result: ExecutionResult = Field(default_factory=ExecutionResult)
    metrics: Annotated[dict[str, Any], BeforeValidator(as_metrics)] = Field(default_factory=dict)
    plots: Annotated[list[Plot], BeforeValidator(as_plots)] = Field(default_factory=list)
    verdict: Text = ""
    reasoning: Text = ""
    results: Text = ""
    summary: Text = ""

    @property
    def failure(self) -> str:
        """Why the experiment's run counts as failed, in a few words; empty if it does not."""
        run = {"returncode": self.execution_result.returncode, **(self.execution_result.model_extra or {})}
        flags = (f"{name} {str(bad).lower()}" for name, bad in _FLAGS if run.get(name) is bad)
        return _find_failure(run) or next(flags, "") or _find_failure(self.model_extra or {})

    def text_at(self, path: str) -> str:
        """The text of the field at a path (`paper_concept.description`); list items are joined by spaces."""
        value: Any = self
        for name in path.split("."):
            value = getattr(value, name)
        if isinstance(value, dict):
            return "; ".join(f"{name.replace('_', ' ')}: {number}" for name, number in value.items())
        if isinstance(value, list):
            return " ".join(item.caption if isinstance(item, Plot) else str(item) for item in value)
        return str(value)

    def leaves(self) -> list[tuple[str, Any]]:
        """Every value with its JSON path (`metrics.auroc[2]`), in order; a list precedes its items."""
        return list(_leaves(json.loads(self.model_dump_json(exclude={SHORTENED})), ""))

    @cached_property
    def words(self) -> str:
        """All text including field names, one paragraph per value: the user's own words."""
        return "\n\n".join(_texts(json.loads(self.model_dump_json(exclude={SHORTENED}))))

    def found_plots(self) -> list[tuple[int, Plot]]:
        """The plots whose file was found, with their indices in `plots`; only these can be shown and mentioned."""
        return [(place, plot) for place, plot in enumerate(self.plots) if (plot.model_extra or {}).get(PLOT_FILE)]

    def figures(self) -> list[tuple[int, Plot]]:
        """The found plots, numbered without gaps, or by position in `plots` if the experiment's text cites numbers."""
        found = self.found_plots()
        own_words = [*map(self.text_at, _PROSE), *(plot.caption for _, plot in found)]
        if any(map(_FIGURE_NUMBER.search, own_words)):
            return [(place + 1, plot) for place, plot in found]
        return [(number, plot) for number, (_, plot) in enumerate(found, 1)]


_RECORDS = ("paper_concept", "hypothesis", "execution_result")
_FAILED_STATES = frozenset(
    "failed failure fail error errored crashed timeout timed_out aborted killed cancelled canceled".split()
)
_EXIT_CODES = ("returncode", "return_code", "exit_code", "exitcode")
_FLAGS = (("success", False), ("succeeded", False), ("failed", True), ("timed_out", True))
_RUN_FIELDS = frozenset((*_EXIT_CODES, *dict(_FLAGS), "status"))  # from which `failure` is derived


def _find_failure(fields: Mapping[str, Any]) -> str:
    """The exit code or status that shows that a run failed; empty if there is none."""
    for name in _EXIT_CODES:
        code = fields.get(name)
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            return f"{name} {code}"
    status = fields.get("status")
    if isinstance(status, str) and re.sub(r"[\s-]+", "_", status.strip().lower()) in _FAILED_STATES:
        return f"status {' '.join(status.split())}"
    return ""


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


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in [part for pair in value.items() for part in pair] if isinstance(value, dict) else value:
            yield from _texts(item)
    elif value is not None:
        yield str(value)


class ExperimentError(InputError):
    """`exp.json` cannot be read or lacks what the section needs; `issues` are the invalid fields and their problems."""

    default_help = "See '{command} --help' for the fields of exp.json."

    def __init__(self, message: str, *, help: str | None = None, issues: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message, help=help)
        self.issues = tuple(issues)


@dataclass(frozen=True, slots=True)
class UnusableField:
    """A field that cannot be used, with the problem and, where it is not obvious, the remedy."""

    field: str
    problem: str
    remedy: str = ""

    @property
    def root(self) -> str:
        """The top-level field that this field is, or is part of."""
        return re.split(r"[.\[]", self.field, maxsplit=1)[0]


# The whole experiment is stored with each step of a run, and searched for each number in a text; hence these limits.
_LOGS = ("execution_result.stdout", "execution_result.stderr")  # shortened in the middle
_MOST_CHARACTERS = {
    "paper_concept.title": 1_000,
    "experiment_code": 200_000,
    **dict.fromkeys(_LOGS, 100_000),
    **dict.fromkeys(("hypothesis.method_combination", *_PROSE), 50_000),
}
_MOST_QUESTIONS = 200
_MOST_PLOTS = 200
_MOST_OF_ITEM = 2_000  # characters of a question, of a caption and of the path of a plot
_MOST_OF_METRICS = 250_000  # characters as JSON: about 10,000 numbers with their names
_MOST_OF_UNKNOWN = 100_000  # characters as JSON of all unknown fields together
_MOST_NOTICES = 50
_CUT = "\n[...]\n"

_MOST_BYTES = 50_000_000
_MOST_DIGITS = 1_000
_MOST_BITS = 3_322  # length of an integer with the maximum number of digits
_MAX_DEPTH = 100  # levels of objects and lists
_MOST_PROBLEMS = 10  # in one message
_MOST_ISSUES = 200
_LONGEST_PATH = 120  # characters
_LONGEST_NOTICE = 300
_SHORTER = "Give what the text needs."
_LONGEST_NAME = 40  # characters of an unknown field that are compared
_ALIKE = 0.8
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE_SURROGATE = ("contains half a character (a lone surrogate)", "Write the whole character, or leave it out.")
_OWN_FILE = "Give the path of your experiment, a JSON file such as examples/exp.json."
_FLATTER = "Put deep structures into a text field, or leave them out."

# Fields that a section needs but a failed run does not provide.
OUTCOMES = frozenset({"results", "execution_result.stdout", "metrics", "reasoning", "summary"})


def load_experiment(path: Path | str, *kinds: SectionKind) -> Experiment:
    """Read `exp.json`; raises one `ExperimentError` listing everything wrong or missing for sections of `kinds`."""
    source = Path(path)
    try:
        if source.stat().st_size > _MOST_BYTES:
            raise ExperimentError(
                f"{source}: is larger than the limit of {_MOST_BYTES // 1_000_000} MB.",
                help="Leave out what the paper does not need, such as a complete log.",
            )
        raw = source.read_bytes()
    except FileNotFoundError:
        raise ExperimentError(f"{source}: no such file.", help=_OWN_FILE) from None
    except IsADirectoryError:
        raise ExperimentError(f"{source}: is a folder, not a JSON file.", help=_OWN_FILE) from None
    except OSError as error:
        raise ExperimentError(f"{source}: cannot be read ({error.strerror}).") from error
    try:
        # An integer with too many digits for Python to print becomes infinite, and is refused as such.
        data = json.loads(
            raw.decode("utf-8-sig"), parse_int=lambda text: int(text) if len(text) <= _MOST_DIGITS else math.inf
        )
    except RecursionError:
        raise ExperimentError(f"{source}: is nested deeper than {_MAX_DEPTH} levels.", help=_FLATTER) from None
    except json.JSONDecodeError as error:
        if raw.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"["):
            raise ExperimentError(f"{source}: is not a JSON file.", help=_OWN_FILE) from error
        raise ExperimentError(
            f"{source}: line {error.lineno}, column {error.colno}: is not valid JSON ({error.msg}).",
            help="Correct that line; commas between fields and quotes around names are easily missed.",
        ) from error
    except ValueError as error:
        kind = "PDF" if raw.startswith(b"%PDF") else "binary file, or text that is not UTF-8"
        raise ExperimentError(f"{source}: is a {kind}, not JSON.", help=_OWN_FILE) from error
    return parse_experiment(data, *kinds, source=str(source))


def parse_experiment(
    data: object, *kinds: SectionKind, source: str = "experiment", left_out: Sequence[UnusableField] = ()
) -> Experiment:
    """Validate an experiment given as plain data; raises one `ExperimentError` that names `source` and every problem.

    Fields required by sections of `kinds` are checked too; `left_out` are problems of fields already removed from
    `data`.
    """
    if not isinstance(data, dict):
        raise ExperimentError(f"{source}: must be a JSON object, but is {kind_of_value(data)}.")
    experiment, problems = examine_experiment(data)
    require_fields(experiment, *kinds, source=source, problems=[*left_out, *problems])
    if experiment.failure:  # its numbers are not results
        run = experiment.execution_result.model_copy(update={"stdout": ""})
        outcome = {"execution_result": run, "metrics": {}, "plots": [], "results": "", "verdict": ""}
        experiment = experiment.model_copy(update=outcome)
    return limit_sizes(experiment)


def examine_experiment(data: dict[Any, Any]) -> tuple[Experiment, list[UnusableField]]:
    """The experiment without its unusable fields, and their problems."""
    problems = list(islice(_unstorable_values(data), _MOST_ISSUES))
    unusable = {problem.root for problem in problems}
    kept = {name: value for name, value in data.items() if str(name) not in unusable}
    form = move_fields(kept)
    try:
        return Experiment.model_validate(form), problems
    except ValidationError as error:
        wrong: dict[str, str] = {}
        for item in error.errors():
            wrong.setdefault(_shorten_path(field_path(item["loc"])), describe_invalid(item))
        names = {str(item["loc"][0]) for item in error.errors()}
        usable = {name: value for name, value in form.items() if str(name) not in names}
        problems += [UnusableField(path, why) for path, why in wrong.items()]
        return Experiment.model_validate(usable), problems


def require_fields(
    experiment: Experiment, *kinds: SectionKind, source: str = "experiment", problems: Sequence[UnusableField] = ()
) -> None:
    """Raise one `ExperimentError` with all problems and missing fields; a failed run needs no outcome."""
    lacks: dict[tuple[str, ...], list[str]] = {}
    for kind in kinds:
        for group in missing_fields(experiment, kind, problems):
            same = next((known for known in lacks if {*known} == {*group}), group)  # the order of fields differs
            lacks.setdefault(same, []).append(kind)
    if not problems and not lacks:
        return
    said = [f"field {_shorten_path(problem.field)}: {problem.problem}" for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        said.append(f"and {len(problems) - _MOST_PROBLEMS} more")
    for group, names in lacks.items():
        some = f"one of the fields {join_words(group, 'or')} must be given"
        one = f"field {group[0]} is missing or empty"
        said.append(f"{one if len(group) == 1 else some} (needed for {join_words(names)})")
    near = "".join(f" Is {found} meant to be {known}?" for found, known in near_fields(experiment) if lacks)
    remedies = " ".join(dict.fromkeys(problem.remedy for problem in problems if problem.remedy))
    issues = [(_shorten_path(problem.field), f"{problem.problem}. {problem.remedy}".strip()) for problem in problems]
    raise ExperimentError(f"{source}: {'; '.join(said)}.{near}", help=remedies or None, issues=issues)


def limit_sizes(experiment: Experiment) -> Experiment:
    """Shorten an experiment to the usable limits; `experiment_warnings` names each shortened field."""
    extra = experiment.model_extra or {}
    data = experiment.model_dump(exclude={SHORTENED})
    notices = [*_shorten_texts(data), *_shorten_lists(data), *_shorten_trees(data, experiment)]
    known = [*_earlier_notices(extra.get(SHORTENED)), *notices][:_MOST_NOTICES]
    if not notices and extra.get(SHORTENED) in (None, known):
        return experiment
    return Experiment.model_validate({**data, SHORTENED: known})


def _earlier_notices(given: object) -> list[str]:
    return [line[:_LONGEST_NOTICE] for line in given if isinstance(line, str)] if isinstance(given, list) else []


def _shorten_texts(data: dict[str, Any]) -> Iterator[str]:
    """Cut texts over their limit, and yield a notice for each."""
    for path, most in _MOST_CHARACTERS.items():
        record, name = _find_record(data, path)
        text = record[name]
        if len(text) <= most:
            continue
        half = (most - len(_CUT)) // 2
        record[name] = f"{text[:half]}{_CUT}{text[-half:]}" if path in _LOGS else text[:most]
        part = f"first and last {half:,}" if path in _LOGS else f"first {most:,}"
        yield f"{path}: has {len(text):,} characters, of which the {part} are used."


def _shorten_lists(data: dict[str, Any]) -> Iterator[str]:
    """Cut lists over their limit and the texts in them, and yield a notice for each list."""
    for path, most in (("paper_concept.open_questions", _MOST_QUESTIONS), ("plots", _MOST_PLOTS)):
        record, name = _find_record(data, path)
        if len(record[name]) > most:
            yield f"{path}: has {len(record[name]):,} entries, of which the first {most} are used."
        record[name] = items = record[name][:most]
        texts = [item[part] for item in items for part in ("path", "caption")] if path == "plots" else items
        longest = max(map(len, texts), default=0)
        if longest > _MOST_OF_ITEM:
            yield f"{path}: has an entry of {longest:,} characters, of which the first {_MOST_OF_ITEM:,} are used."
        for place, item in enumerate(items):
            cut = {part: item[part][:_MOST_OF_ITEM] for part in ("path", "caption")} if path == "plots" else {}
            items[place] = {**item, **cut} if cut else item[:_MOST_OF_ITEM]


def _shorten_trees(data: dict[str, Any], experiment: Experiment) -> Iterator[str]:
    """Cut metrics and unknown fields over their limit, and yield a notice for each."""
    data["metrics"], size = shorten_json(data["metrics"], _MOST_OF_METRICS)
    if size > _MOST_OF_METRICS:
        yield f"metrics: {size:,} characters, of which {_MOST_OF_METRICS:,} are used, {_ORDER}."
    plots = {f"plots[{place}].": item for place, item in enumerate(data["plots"])}
    items = {"": data, **{f"{name}.": data[name] for name in _RECORDS}, **plots}
    unknown = [
        (f"{path}{name}", items[path], name)
        for path, record in _records(experiment)
        for name in record.model_extra or {}
        if name not in (PLOT_FILE, SHORTENED) and name in items.get(path, {})
    ]
    kept, size = shorten_json({path: record[name] for path, record, name in unknown}, _MOST_OF_UNKNOWN)
    if size > _MOST_OF_UNKNOWN:
        for path, record, name in unknown:
            if path in kept:
                record[name] = kept[path]
            else:
                del record[name]
        yield f"unknown fields: {size:,} characters, of which {_MOST_OF_UNKNOWN:,} are used, {_ORDER}."


_ORDER = "single values before long lists and texts"


def _records(experiment: Experiment) -> list[tuple[str, _Record]]:
    """The experiment and the records in it, each with the prefix of its fields' paths."""
    records: list[tuple[str, _Record]] = [("", experiment)]
    records += [(f"{name}.", getattr(experiment, name)) for name in _RECORDS]
    return records + [(f"plots[{place}].", plot) for place, plot in enumerate(experiment.plots)]


def _find_record(data: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    parent, _, name = path.rpartition(".")
    return (data[parent] if parent else data), name


def _unstorable_values(data: dict[Any, Any]) -> Iterator[UnusableField]:
    """The values that cannot be stored, searched or written unchanged."""
    waiting: list[tuple[Any, str, int]] = [(data, "", 0)]
    while waiting:
        value, path, depth = waiting.pop()
        if wrong := _find_problem(value, depth):
            yield UnusableField(path, *wrong)
            continue
        if isinstance(value, dict):
            inner = [(item, f"{path}.{name}" if path else str(name)) for name, item in value.items()]
            yield from (UnusableField(place, *_LONE_SURROGATE) for _, place in inner if _SURROGATE.search(place))
            waiting += [(item, place, depth + 1) for item, place in reversed(inner) if not _SURROGATE.search(place)]
        elif isinstance(value, list | tuple):
            waiting += [(item, f"{path}[{n}]", depth + 1) for n, item in reversed(list(enumerate(value)))]


def _find_problem(value: Any, depth: int) -> tuple[str, str] | None:
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


def _shorten_path(path: str) -> str:
    """The path of a field, shortened for messages."""
    plain = _SURROGATE.sub("\ufffd", path)
    return plain if len(plain) <= _LONGEST_PATH else f"{plain[:_LONGEST_PATH]}…"


def missing_fields(
    experiment: Experiment, kind: SectionKind, problems: Sequence[UnusableField] = ()
) -> list[tuple[str, ...]]:
    """The groups of alternative fields that a section of `kind` needs but lacks; an invalid field does not count."""
    unusable = {problem.root for problem in problems}
    return [
        tuple(group)
        for group in SECTIONS[kind].required
        if not unusable.intersection(path.partition(".")[0] for path in group)
        and not any(experiment.text_at(path).strip() for path in group)
        and not (experiment.failure and OUTCOMES.intersection(group))
    ]


def near_fields(experiment: Experiment) -> list[tuple[str, str]]:
    """The paths of unknown fields that look misspelt or truncated, each with the field that was probably meant."""
    found: list[tuple[str, str]] = []
    for path, record in _records(experiment):
        fields = type(record).model_fields
        known = {field.replace("_", ""): field for field in fields}
        cut = {field.rpartition("_")[2]: field for field in fields if "_" in field}  # "plan" for "experimental_plan"
        for name in _unknown_names(record):
            plain = re.sub(r"[\W_]", "", name[:_LONGEST_NAME]).lower()
            near = difflib.get_close_matches(plain, known, n=1, cutoff=_ALIKE)
            if meant := known[near[0]] if near else cut.get(plain):
                found.append((f"{path}{name}", f"{path}{meant}"))
    return found


def _unknown_names(record: _Record) -> list[str]:
    """The names of unknown fields, except notes, which begin with an underscore."""
    return [name for name in record.model_extra or {} if not name.startswith("_")]


def experiment_warnings(experiment: Experiment) -> list[str]:
    """Warnings about the experiment itself: shortened and misspelt fields, missing images, and a failed run."""
    shortened = _earlier_notices((experiment.model_extra or {}).get(SHORTENED))
    warnings = [f"experiment: {notice} {_SHORTER}" for notice in shortened]
    misspelt = dict(near_fields(experiment))
    warnings += [
        f"experiment: unknown field {_shorten_path(found)} is ignored: did you mean {known}?"
        for found, known in misspelt.items()
    ]
    names = [f"{path}{name}" for path, record in _records(experiment) for name in _unknown_names(record)]
    if unused := [name for name in names if name not in misspelt and name.rpartition(".")[2] not in _RUN_FIELDS]:
        named = _shorten_path(", ".join(unused))
        warnings.append(f"experiment: unknown fields, which only a chat model can use: {named}.")
    found = {place for place, _ in experiment.found_plots()}
    paths = [plot.path for plot in experiment.plots]
    if missing := [path for place, path in enumerate(paths) if path and place not in found]:
        named = _shorten_path(", ".join(map(repr, missing)))
        warnings.append(
            f"experiment: plots: there is no image (png, jpg, svg, pdf, webp) at {named}; "
            "the text does not mention these plots."
        )
    if pathless := ", ".join(f"plots[{place}]" for place, path in enumerate(paths) if not path):
        warnings.append(f"experiment: {_shorten_path(pathless)}: has no path to an image and is not used.")
    if experiment.failure:
        warnings.append(
            f"experiment: the run of the experiment failed ({experiment.failure}): results, metrics, stdout, plots and "
            "verdict are not used; give the outcome of a successful run."
        )
    return warnings
