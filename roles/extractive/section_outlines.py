"""What each section states about the experiment, paragraph by paragraph, in the experiment's own words.

An outline holds statements only; which source goes with which statement is decided afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from ...documents import Category
from ...documents.field_blocks import FieldBlock, blocks
from ...documents.marker_escaping import as_text
from ...experiment import Experiment, SectionKind
from ...text.sentences import sentence_spans
from .source_matching import MatchLimits

_CLOSED = re.compile(r"[.?!\u2026][\"'\u201d\u2019)\]*_`]*$")
_STEP = re.compile(r"(?:^|(?<=\s))\d{1,2}[.)]\s+(?=[A-Z\[])")


@dataclass(frozen=True, slots=True)
class OutlineStatement:
    """A sentence as it will appear in the section; `about` is the text that sources are matched with.

    A statement with an empty `about` takes no source; one without `text` is there only for its sources. A `block` is a
    list, a table or a heading on lines of its own.
    """

    text: str
    about: str
    block: bool = False


Paragraph = tuple[OutlineStatement, ...]


EXPECTED, APPROACH, OUTCOME = LEADS = (
    "We put forward this hypothesis:",
    "In outline, the approach is:",
    "In figures, the outcome is this:",
)

_ARTICLES = frozenset({"A", "An", "The"})

_VERDICTS = (
    (("partial", "mixed", "partly"), "The hypothesis is supported in part"),
    (
        ("not_supported", "not supported", "unsupported", "refuted", "rejected", "false", "disproved", "no"),
        "The hypothesis is not supported",
    ),
    (("inconclusive", "unclear", "undecided"), "The experiment does not decide the hypothesis"),
    (("supported", "confirmed", "true", "accepted", "yes"), "The hypothesis is supported"),
)


def paragraphs(kind: SectionKind, experiment: Experiment) -> list[Paragraph]:
    """The paragraphs of a section; those without text in the experiment are left out."""
    made = OUTLINES[kind].plan(experiment)
    return [paragraph for paragraph in made if paragraph]


def sentences(text: str) -> list[str]:
    """The sentences of an experiment's field, one line each, ending in a full stop; otherwise verbatim."""
    return [statement.text for statement in plain(text) if not statement.block]


@lru_cache(maxsize=64)
def plain(text: str) -> Paragraph:
    """The sentences of a field, each a statement of its own, with lists, tables and headings unchanged."""
    parts = blocks(text)
    made: list[OutlineStatement] = []
    for block, after in zip(parts, (*parts[1:], None), strict=False):
        text = as_text(block.text)
        if block.kind == "paragraph":
            leads_on = after is not None and after.kind == "kept"
            made += [OutlineStatement(sentence, sentence) for sentence in _sentences_of(text, leads_on=leads_on)]
        else:
            made.append(OutlineStatement(text, _about(block), block=True))
    return tuple(made)


def _sentences_of(flat: str, *, leads_on: bool) -> list[str]:
    found = [flat[start:end].strip() for start, end in sentence_spans(flat)]
    found = [sentence for sentence in found if sentence]
    closed = [sentence if _CLOSED.search(sentence) else f"{sentence.rstrip(';:,')}." for sentence in found]
    return [*closed[:-1], found[-1]] if leads_on and found and found[-1].endswith(":") else closed


def _about(block: FieldBlock) -> str:
    """What sources for a list or a table are matched with; a heading takes none."""
    return "" if block.kind == "heading" else " ".join(re.sub(r"[|*`#>-]+", " ", block.text).split())


def with_lead_in(lead: str, text: str) -> Paragraph:
    """Statements of which the first has a lead-in ("We hypothesise this: ..."); its spelling is unchanged."""
    stated = plain(text)
    if not stated:
        return ()
    first = stated[0]
    if first.block:
        return (OutlineStatement(lead, ""), *stated)
    return (OutlineStatement(f"{lead} {first.text}", first.about), *stated[1:])


def _after_colon(text: str) -> str:
    """A sentence as it continues another one: an article at its beginning is in lower case."""
    word, _, rest = text.partition(" ")
    return f"{word.lower()} {rest}" if word in _ARTICLES else text


def verdict_is(experiment: Experiment) -> str:
    """The verdict as the beginning of a sentence; empty when it is in the user's own words."""
    word = experiment.verdict.strip().lower()
    return next((text for marks, text in _VERDICTS if any(word.startswith(mark) for mark in marks)), "")


def verdict(experiment: Experiment) -> Paragraph:
    """The answer to the hypothesis, which is repeated when it is one sentence."""
    opening = verdict_is(experiment)
    hypothesis = plain(experiment.hypothesis.description)
    if not opening:
        return plain(experiment.verdict)
    if len(hypothesis) != 1 or hypothesis[0].block:
        return (OutlineStatement(f"{opening}.", ""),)
    return (OutlineStatement(f"{opening}: {_after_colon(hypothesis[0].text)}", ""),)


def questions(experiment: Experiment) -> Paragraph:
    """The open questions, after a sentence that counts them."""
    asked = [statement for text in experiment.paper_concept.open_questions for statement in plain(text)]
    if not asked:
        return ()
    count = sum(bool(text.strip()) for text in experiment.paper_concept.open_questions)
    opening = "One question is open." if count == 1 else f"{_number(count)} questions are open."
    return (OutlineStatement(opening, ""), *asked)


def _number(count: int) -> str:
    words = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
    return words[count] if count < len(words) else str(count)


def _approach(experiment: Experiment) -> Paragraph:
    lead, combination = APPROACH, experiment.hypothesis.method_combination
    stated = plain(combination)
    if not stated or any(statement.block for statement in stated):
        return with_lead_in(lead, combination)
    return (OutlineStatement(f"{lead} {' '.join(statement.text for statement in stated)}", combination),)


def _steps(experiment: Experiment) -> Paragraph:
    stated = plain(experiment.experimental_plan)
    if any(statement.block for statement in stated):
        return stated
    steps = [step.strip() for step in _STEP.split(" ".join(experiment.experimental_plan.split())) if step.strip()]
    if len(steps) < 2:
        return stated
    made = []
    for number, step in enumerate(steps, start=1):
        body = " ".join(sentences(step))
        if body:
            made.append(OutlineStatement(f"Step {number}: {body}", body))
    return (OutlineStatement("The work was planned in these steps.", ""), *made)


def mention_of_figures(experiment: Experiment) -> Paragraph:
    """A mention of each figure that is present, by which it is shown; its caption stands below it."""
    *others, last = [f"Figure {number}" for number, _ in experiment.figures()] or [""]
    named = f"{', '.join(others)} and {last}" if others else last
    return (OutlineStatement(f"The outcome is shown in {named}.", ""),) if named else ()


def failed(kind: SectionKind, experiment: Experiment) -> Paragraph:
    """That the run failed, worded for a section that would report its outcome; nothing when it succeeded."""
    said = failed_statement(kind, experiment)
    return (OutlineStatement(said, ""),) if said else ()


def failed_statement(kind: SectionKind, experiment: Experiment) -> str:
    """The sentence by which a section says that the run failed; empty when it says nothing."""
    return OUTLINES[kind].failed.format(reason=experiment.failure) if experiment.failure else ""


def metrics(experiment: Experiment) -> Paragraph:
    """The metrics in one sentence."""
    values = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in experiment.metrics.items()
        if isinstance(value, int | float | str) and not isinstance(value, bool)
    ]
    if not values:
        return ()
    return (OutlineStatement(as_text(f"The measured values are: {'; '.join(values)}."), ""),)


def _introduction(experiment: Experiment) -> list[Paragraph]:
    description = plain(experiment.paper_concept.description)
    return [
        description,
        questions(experiment),
        (*with_lead_in(EXPECTED, experiment.hypothesis.description), *_approach(experiment)),
    ]


def _methods(experiment: Experiment) -> list[Paragraph]:
    return [_approach(experiment), _steps(experiment)]


def _results(experiment: Experiment) -> list[Paragraph]:
    stated = failed("results", experiment) or plain(experiment.results)
    return [stated or metrics(experiment) or plain(experiment.reasoning), mention_of_figures(experiment)]


def _discussion(experiment: Experiment) -> list[Paragraph]:
    reasoning = plain(experiment.reasoning)
    # The sources follow the first finding, and may be relevant to the hypothesis that it answers.
    first = tuple(
        replace(item, about=f"{experiment.hypothesis.description} {item.about}".strip()) for item in reasoning[:1]
    )
    return [
        (*failed("discussion", experiment), *verdict(experiment), *first),
        reasoning[1:],
        with_lead_in(OUTCOME, experiment.results) if not reasoning else plain(experiment.results),
        questions(experiment),
        plain(experiment.summary),
    ]


def _conclusion(experiment: Experiment) -> list[Paragraph]:
    about = plain(experiment.paper_concept.description)[-1:]
    return [
        (*about, *failed("conclusion", experiment), *verdict(experiment), *plain(experiment.reasoning)),
        plain(experiment.summary),
    ]


def _abstract(experiment: Experiment) -> list[Paragraph]:
    results = plain(experiment.results) or (() if experiment.failure else plain(experiment.reasoning))
    return [
        (
            *plain(experiment.paper_concept.description)[:2],
            *with_lead_in(EXPECTED, experiment.hypothesis.description)[:1],
            *failed("abstract", experiment),
            *(OutlineStatement(item.text, "", item.block) for item in results[:3]),
            *plain(experiment.summary)[:1],
        )
    ]


@dataclass(frozen=True, slots=True)
class SectionOutline:
    """How a kind of section is composed without a model.

    Args:
        plan: its paragraphs for an experiment.
        limits: the maximum number of sources.
        preferred: added to the score of a source by the category of its passage.
        wanted_papers: papers that it should cite; fewer are noted.
        stricter: how much nearer than usual a source must be, since a step of a plan or a line of results is about this
            work.
        failed: the sentence that says that the run of the experiment failed; empty when it says nothing.
    """

    plan: Callable[[Experiment], list[Paragraph]]
    limits: MatchLimits
    preferred: Mapping[Category, float]
    wanted_papers: int = 0
    stricter: float = 0.0
    failed: str = ""


OUTLINES: Final[Mapping[SectionKind, SectionOutline]] = {
    "introduction": SectionOutline(
        _introduction,
        MatchLimits(section=7),
        {Category.INTRODUCTION: 0.02, Category.RELATED_WORK: 0.02, Category.ABSTRACT: 0.01},
        wanted_papers=4,
    ),
    "methods": SectionOutline(_methods, MatchLimits(section=4), {Category.METHOD: 0.03}, stricter=0.06),
    "results": SectionOutline(
        _results,
        MatchLimits(section=4),
        {Category.EVALUATION: 0.03},
        stricter=0.06,
        failed="The run of the experiment failed ({reason}), so there are no results to report.",
    ),
    "discussion": SectionOutline(
        _discussion,
        MatchLimits(section=7),
        {Category.CONCLUSION: 0.02, Category.EVALUATION: 0.02, Category.ABSTRACT: 0.01},
        wanted_papers=4,
        failed="The run of the experiment failed ({reason}), so the hypothesis is neither supported nor refuted.",
    ),
    "conclusion": SectionOutline(
        _conclusion,
        MatchLimits(section=3, fact=1),
        {Category.CONCLUSION: 0.02, Category.ABSTRACT: 0.01},
        failed="The hypothesis stays untested, since the run of the experiment failed ({reason}).",
    ),
    "abstract": SectionOutline(
        _abstract,
        MatchLimits(section=0),  # an abstract stands alone; journals allow no citations in it
        {Category.ABSTRACT: 0.01, Category.INTRODUCTION: 0.01},
        failed="No result is reported, as the run of the experiment failed ({reason}).",
    ),
}
