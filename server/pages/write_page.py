"""Write: a section or paper from an experiment, uploaded or entered in a form. Check: the user's own text."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Literal

from fastapi import APIRouter, Request, Response

from ...api.checking import LABELS
from ...api.evidence_tables import alist_tables
from ...api.run_options import PAPER_ORDER, SECTIONS
from ..server_state import StateOf
from .html import page

router = APIRouter(include_in_schema=False)
FieldForm = Literal["line", "text", "code", "list", "pairs", "plots", "number"]


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of `exp.json` by its path, and how it is entered."""

    path: str
    label: str
    hint: str
    form: FieldForm = "text"
    rows: int = 4

    @property
    def id(self) -> str:
        return "field-" + self.path.replace(".", "-")


FORM: Final = {  # by group, in the order in which authors learn them
    "What it is about": (
        FormField("paper_concept.title", "Title", "Of the paper.", "line"),
        FormField("paper_concept.description", "Description", "The problem and what the paper does about it."),
        FormField("paper_concept.open_questions", "Open questions", "One on each line.", "list", 3),
        FormField("hypothesis.description", "Hypothesis", "What was expected."),
        FormField(
            "hypothesis.method_combination", "Methods combined", "The methods that test it, and how they fit.", rows=3
        ),
    ),
    "What was done": (
        FormField("experimental_plan", "Plan", "Data, steps, comparisons.", rows=5),
        FormField("experiment_code", "Code", "What was run; read for the methods.", "code", 4),
    ),
    "What came out": (
        FormField("results", "Results", "In your words, with their numbers.", rows=5),
        FormField("metrics", "Metrics", "One on each line: name = value.", "pairs", 4),
        FormField("execution_result.stdout", "Output", "What the run printed.", "code", 4),
        FormField("execution_result.stderr", "Error output", "", "code", 2),
        FormField("execution_result.returncode", "Exit code", "0 if the run ended well.", "number"),
        FormField("plots", "Plots", "One on each line: file | caption. Add the images themselves below.", "plots", 2),
    ),
    "What it means": (
        FormField("verdict", "Verdict", "Whether the hypothesis held, in a few words.", "line"),
        FormField("reasoning", "Reasoning", "Why, and what speaks against it."),
        FormField("summary", "Summary", "The whole in two or three sentences.", rows=3),
    ),
}


@router.get("/write")
async def write(request: Request, state: StateOf) -> Response:
    session = state.session
    context = {
        "groups": FORM,
        "weighing": [kind for kind in PAPER_ORDER if SECTIONS[kind].weighs_studies],
        "kinds": [(kind, SECTIONS[kind].purpose) for kind in PAPER_ORDER],
        "papers": len(await asyncio.to_thread(session.library.records)),
        "tables": await alist_tables(session),
        "notice": session.notice,
        "settings": session.settings,
    }
    return page(request, "write.html", context)


@router.get("/check")
def check(request: Request, state: StateOf) -> Response:
    """The form; the script sends it to the API and shows the sentences beside the passages that they cite."""
    session = state.session
    context = {"papers": len(session.library.records()), "judged": "judge" not in session.extractive}
    return page(request, "check_text.html", {**context, "labels": LABELS})
