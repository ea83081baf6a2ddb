"""Builds what each section states about the experiment: whole paragraphs of the author's text, unchanged, in order.

Paragraphs that could be misread have a bold label with their field: a hypothesis is not a finding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...documents.blocks import field_blocks
from ...documents.marker_escaping import escape_markers
from ...experiment import Experiment, SectionKind
from ...plurals import counted
from ...text.words import one_line, read_rules

_STEP = re.compile(r"(?:^|(?<=\s))\d{1,2}[.)]\s+(?=[A-Z\[])")
_CLOSED = re.compile(r"[.?!:\u2026][\"'\u201d\u2019)\]*_`]*$")
_WORDS_OF_A_LABEL: Final = 3  # "partially_supported" is a label, anything longer is prose
_SHOWN_LINES: Final = 20  # of the program's output, if nothing else states the outcome
_LAST_LINES: Final = 5


@dataclass(frozen=True, slots=True)
class OwnParagraph:
    """A block of the section; `about` is the text to find passages for, empty if none are needed."""

    text: str
    about: str = ""


def outline(kind: SectionKind, experiment: Experiment, *, of_paper: bool = False) -> list[OwnParagraph]:
    """Return the paragraphs of a section; empty fields give none.

    In a paper, a section leaves out statements of an earlier section unless it has no others; only the abstract
    repeats.
    """
    if of_paper and kind in _STATED_FIRST:
        others = _STATED_FIRST[: _STATED_FIRST.index(kind)]
        elsewhere = {item.about for other in others for item in outline(other, experiment) if item.about}
        own = [item for item in outline(kind, experiment) if item.about not in elsewhere]
        return own if any(item.about for item in own) else outline(kind, experiment)
    made = [item for part in _RULES["outlines"][kind] for item in _part(part, experiment)]
    if failed := failure_statement(kind, experiment):
        made.insert(2 if kind == "abstract" else 0, OwnParagraph(failed))
    return made


def note_used_parts(kind: SectionKind, experiment: Experiment) -> list[str]:
    """Note the parts of the experiment that a results section used and left out."""
    if kind != "results":
        return []
    count = sum(1 for _ in _flatten(experiment.metrics)) if experiment.metrics else 0
    lines = len(experiment.execution_result.stdout.splitlines())
    shown = min(lines, _SHOWN_LINES) if _shows_output(experiment) else 0
    found = len(experiment.found_plots())
    used = ["the field results"] * bool(experiment.results.strip()) + [counted(count, "metric")] * bool(count)
    used += [f"{shown} of {counted(lines, 'line')} of stdout"] * bool(shown) + [counted(found, "plot")] * bool(found)
    left = f"left out: stdout ({counted(lines, 'line')})" if lines and not shown else "none of its metrics is left out"
    return [f"The results section uses {', '.join(used) or 'nothing'} of your experiment; {left}."]


def failure_statement(kind: SectionKind, experiment: Experiment) -> str:
    """Return the sentence stating that the run failed; empty if it did not, or the section does not say so."""
    return str(_RULES["failed"].get(kind, "")).format(reason=experiment.failure) if experiment.failure else ""


def field_paragraphs(text: str, label: str = "") -> list[OwnParagraph]:
    """Return the blocks of a field in order, unchanged but for a final full stop; the first has the label."""
    made: list[OwnParagraph] = []
    blocks = field_blocks(text)
    for block in blocks:
        words = escape_markers(block.text)
        if block.kind == "paragraph":
            made.append(OwnParagraph(words if _CLOSED.search(words) else f"{words}.", block.text))
        else:
            plain = " ".join(re.sub(r"[|*`#>-]+", " ", block.text).split())
            made.append(OwnParagraph(words, "" if block.kind == "heading" else plain))
    if label and made and text.strip():
        head = f"**{label}.**"
        if blocks[0].kind == "paragraph":
            made[0] = OwnParagraph(f"{head} {made[0].text}", made[0].about)
        else:
            made.insert(0, OwnParagraph(head))
    return made


def _part(part: str, experiment: Experiment) -> list[OwnParagraph]:
    """Build a part of an outline: a composed one, or the first of its fields that has text."""
    if part in _COMPOSED:
        return _COMPOSED[part](experiment)
    label, _, paths = part.rpartition(": ")
    return next(
        (found for path in paths.split(" | ") if (found := field_paragraphs(experiment.text_at(path), label))), []
    )


def _verdict(experiment: Experiment) -> list[OwnParagraph]:
    """State the verdict separately, never joined to the hypothesis."""
    said = " ".join(experiment.verdict.replace("_", " ").split())
    if len(said.split()) > _WORDS_OF_A_LABEL:
        return field_paragraphs(experiment.verdict, "Verdict")
    return [OwnParagraph(f"**Verdict.** {escape_markers(said[0].upper() + said[1:].rstrip('.'))}.")] if said else []


def _questions(experiment: Experiment) -> list[OwnParagraph]:
    asked = [" ".join(text.split()) for text in experiment.paper_concept.open_questions]
    return [OwnParagraph(f"**Open question.** {escape_markers(text)}", text) for text in asked if text]


def _plan(experiment: Experiment) -> list[OwnParagraph]:
    """State the plan; steps numbered on one line become a list."""
    stated = field_paragraphs(experiment.experimental_plan, "Procedure")
    steps = [step.strip() for step in _STEP.split(" ".join(experiment.experimental_plan.split())) if step.strip()]
    if len(steps) < 2 or len(stated) > 1:
        return stated
    listed = "\n".join(f"{number}. {escape_markers(step)}" for number, step in enumerate(steps, 1))
    return [OwnParagraph("**Procedure.**"), OwnParagraph(listed, " ".join(steps))]


def _figures(experiment: Experiment) -> list[OwnParagraph]:
    """Mention each available figure, so that it appears below with its caption."""
    *others, last = [f"Figure {number}" for number, _ in experiment.figures()] or [""]
    named = f"{', '.join(others)} and {last}" if others else last
    return [OwnParagraph(f"The outcome is shown in {named}.")] if named else []


def _shows_output(experiment: Experiment) -> bool:
    return bool(experiment.execution_result.stdout.strip()) and not experiment.results.strip()


def _output(experiment: Experiment) -> list[OwnParagraph]:
    """Show the program's output, shortened, if the author did not state the results."""
    if not _shows_output(experiment):
        return []
    lines = [line.rstrip() for line in experiment.execution_result.stdout.splitlines()]
    if (left := len(lines) - _SHOWN_LINES) > 0:
        lines[_SHOWN_LINES - _LAST_LINES : -_LAST_LINES] = [f"... ({counted(left, 'line')} left out)"]
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", "\n".join(lines))), default=0))
    body = escape_markers("\n".join(lines))
    return [OwnParagraph("**Output of the program.**"), OwnParagraph(f"{fence}\n{body}\n{fence}")]


def _measured(experiment: Experiment) -> list[OwnParagraph]:
    tables = [OwnParagraph(escape_markers(block)) for block in metrics_table(experiment.metrics)]
    measured = [*field_paragraphs(experiment.results), *tables, *_output(experiment)]
    return measured or ([] if experiment.failure else field_paragraphs(experiment.reasoning))


def _outcome(experiment: Experiment) -> list[OwnParagraph]:
    reasoned = "" if experiment.failure else experiment.reasoning
    return field_paragraphs(experiment.results, "Results") or field_paragraphs(reasoned, "Results")


_RULES: Final = read_rules(__file__, "section_outlines")
_COMPOSED: Final[Mapping[str, Callable[[Experiment], list[OwnParagraph]]]] = {
    "figures": _figures,
    "measured": _measured,
    "outcome": _outcome,
    "plan": _plan,
    "questions": _questions,
    "verdict": _verdict,
}
# Sections whose statements are not repeated by the ones after them.
_STATED_FIRST: Final[tuple[SectionKind, ...]] = ("methods", "results", "introduction", "conclusion", "discussion")
_NONE: Final = "\u2013"
_SPECIAL: Final = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>|~^$#"})


def metrics_table(metrics: Mapping[str, Any]) -> list[str]:
    """Format all metrics as Markdown tables: single values in a table of two columns, nested dicts in separate tables.

    Dicts with the same names, such as two scores of three models, become the rows of one table.
    """
    plain = {name: value for name, value in metrics.items() if not _nested(value)}
    groups: dict[str | tuple[str, ...], dict[str, Any]] = {}
    for name, value in metrics.items():
        if _nested(value):
            groups.setdefault(name if any(map(_nested, value.values())) else tuple(value), {})[name] = value
    several = [("Metric", group) if len(group) > 1 else next(iter(group.items())) for group in groups.values()]
    return [_table(name, rows) for name, rows in [("Metric", plain), *several] if rows]


def _nested(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _table(name: str, rows: Mapping[str, Any]) -> str:
    """Format a table: a dict of dicts has a column for each inner name, a dict of values two columns."""
    cells = {row: dict(_flatten(value)) for row, value in rows.items()}
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    plain = columns == [""]
    lines = [[_cell_label(name), *("Value" if plain else _cell_label(column) or "value" for column in columns)]]
    lines.append(["---"] * len(lines[0]))
    for row, of in cells.items():
        lines.append([_cell_label(row), *(_format_value(of[column]) if column in of else "" for column in columns)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _flatten(value: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a row's values by name; nested names are joined by a slash."""
    if not _nested(value):
        yield before, value
        return
    for name, inner in value.items():
        yield from _flatten(inner, f"{before} / {name}" if before else name)


def _cell_label(name: str) -> str:
    return one_line(str(name)).replace("_", " ").translate(_SPECIAL)


def _format_value(value: Any) -> str:
    """Format a value as the author wrote it; null is a dash."""
    if value is None:
        return _NONE
    if isinstance(value, list):
        return ", ".join(_format_value(item) for item in value) or _NONE
    text = one_line(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.translate(_SPECIAL)
