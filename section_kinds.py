"""The kinds of sections and what sets each apart: the one table from which commands, prompts and checks are derived;
and the choices of a run that settings and commands both offer.

Fields are paths of an experiment (`paper_concept.description`). Only the standard library is imported: `--help` reads
this too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

Depth = Literal["brief", "standard", "thorough"]  # how much a text says
Ask = Literal["needs", "evidence", "sentences", "budget", "all"]  # what a run may ask a person, in its order
CitationFields = Literal["zotero", "text"]  # how a Word or LibreOffice document cites
SectionKind = Literal["introduction", "methods", "results", "discussion", "conclusion", "abstract"]
SECTION_KINDS: tuple[SectionKind, ...] = get_args(SectionKind)

# A section is written after the sections that it sums up.
WRITING_ORDER: tuple[SectionKind, ...] = ("methods", "results", "discussion", "conclusion", "introduction", "abstract")
PAPER_ORDER: tuple[SectionKind, ...] = ("abstract", "introduction", "methods", "results", "discussion", "conclusion")


@dataclass(frozen=True, slots=True)
class SectionSpec:
    """What sets a kind of section apart."""

    purpose: str  # what it says, for `--help` and completion
    required: tuple[tuple[str, ...], ...]  # it can be written when each group has at least one field with text
    queried: tuple[str, ...]  # fields that the default queries are made of, one each
    prompted: tuple[str, ...]  # fields that it is written from; the whole experiment would drown what matters
    stated: tuple[str, ...] = ()  # fields that it is about; the user's own citations in them belong in it
    sums_up: tuple[SectionKind, ...] = ()  # sections of the same paper that its writer is shown
    must_cite: bool = False  # whether a draft without citations is a fault where there are sources
    weighs_studies: bool = False  # whether it may rest on evidence tables

    @property
    def needs(self) -> str:
        """The required fields as a message names them: "a; b, c or d"."""
        return "; ".join(" or ".join(filter(None, (", ".join(group[:-1]), group[-1]))) for group in self.required)


_CONCEPT = ("paper_concept.title", "paper_concept.description")
_HYPOTHESIS = ("hypothesis.description", "hypothesis.method_combination")
_CASE = (*_CONCEPT, *_HYPOTHESIS, "experimental_plan")
_OPEN = (*_CONCEPT, "paper_concept.open_questions")
_OUTCOME = ("verdict", "reasoning", "results")

SECTIONS: Final[Mapping[SectionKind, SectionSpec]] = {
    "introduction": SectionSpec(
        purpose="the problem, what is open, and the hypothesis, set against earlier work",
        required=(("paper_concept.description",), ("hypothesis.description", "paper_concept.open_questions")),
        queried=("paper_concept.description", "paper_concept.open_questions", "hypothesis.description"),
        prompted=(*_OPEN, *_HYPOTHESIS, "summary"),
        stated=("paper_concept.description", "paper_concept.open_questions", "hypothesis.description"),
        sums_up=("methods", "results", "discussion", "conclusion"),
        must_cite=True,
        weighs_studies=True,
    ),
    "methods": SectionSpec(
        purpose="what was done and how, compared with similar methods",
        required=(("experimental_plan", "hypothesis.method_combination"),),
        queried=("experimental_plan", "hypothesis.method_combination", "experiment_code"),
        prompted=(*_CASE, "experiment_code", "metrics", "plots"),
        stated=("hypothesis.method_combination", "experimental_plan"),
    ),
    "results": SectionSpec(
        purpose="what came out, with the experiment's numbers",
        required=(("results", "execution_result.stdout", "metrics"),),
        queried=("execution_result.stdout", "metrics", "plots"),
        prompted=(*_CASE, "results", "metrics", "execution_result.stdout", "plots", "verdict"),
        stated=("results",),
    ),
    "discussion": SectionSpec(
        purpose="what the results mean, set against earlier findings",
        required=(("reasoning", "results", "summary"),),
        queried=_OUTCOME,
        prompted=(*_OPEN, *_HYPOTHESIS, *_OUTCOME, "metrics", "summary"),
        stated=("reasoning", "verdict"),
        must_cite=True,
        weighs_studies=True,
    ),
    "conclusion": SectionSpec(
        purpose="the verdict and what follows from it",
        required=(("paper_concept.description",), ("reasoning", "summary", "results")),
        queried=("verdict", "reasoning", "paper_concept.description"),
        prompted=(*_OPEN, "hypothesis.description", *_OUTCOME, "summary"),
        stated=("summary",),
        sums_up=("results", "discussion"),
    ),
    "abstract": SectionSpec(
        purpose="the whole paper in one paragraph",
        required=(("paper_concept.description",), ("summary", "results", "reasoning")),
        queried=("paper_concept.description", "summary"),
        prompted=(*_CASE, *_OUTCOME, "metrics", "summary"),
        sums_up=("introduction", "methods", "results", "discussion", "conclusion"),
    ),
}
