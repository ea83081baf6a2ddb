"""Selects the fields of an experiment that each section is planned and written from, and formats them for a prompt."""

from __future__ import annotations

import json
from typing import Final

from ...experiment import Experiment, SectionKind
from ...models.context_size import WHOLE
from ...section_kinds import SECTIONS
from .prompt_format import fenced, one_line, shortened, tokens_of

# Approximate number of tokens of one field.
WRITER_FIELD_TOKENS = 900
PLANNER_FIELD_TOKENS = 250
_LEAST_FIELD_TOKENS: Final = 12


def present_experiment(experiment: Experiment, kind: SectionKind, field_tokens: int, total: int = WHOLE) -> str:
    """The fields for a section of `kind`, and what the user added, in one fence of `total` tokens.

    Fields whose name begins with an underscore are the user's own notes and are left out.
    """
    fields = {path: _field_text(experiment, path) for path in SECTIONS[kind].prompted}
    if experiment.failure:
        fields["execution_result"] = f"The run failed ({experiment.failure}). It has no results and decides nothing."
    for name, value in (experiment.model_extra or {}).items():
        if not name.startswith("_"):
            fields[one_line(name)] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    parts = [f"{path}:\n{shortened(text.strip(), field_tokens)}" for path, text in fields.items() if text.strip()]
    shown = fenced("\n\n".join(parts) or "(nothing is stated)", "experiment")
    if tokens_of(shown) <= total:
        return shown
    if field_tokens > _LEAST_FIELD_TOKENS:
        return present_experiment(experiment, kind, field_tokens * 2 // 3, total)
    return fenced(shortened("\n\n".join(parts), total), "experiment")


def _field_text(experiment: Experiment, path: str) -> str:
    if path == "metrics":
        return "\n".join(f"{name}: {json.dumps(value)}" for name, value in experiment.metrics.items())
    if path == "plots":
        return "\n".join(f"Figure {number}: {plot.caption}" for number, plot in experiment.figures())
    if path == "paper_concept.open_questions":
        return "\n".join(experiment.paper_concept.open_questions)
    return experiment.text_at(path)
