"""Which section of a whole paper keeps which of the experiment's statements, so that none is made twice.

Written by themselves, a discussion, a conclusion and an abstract each tell what was found. In one paper the results
keep the results; the reasoning is the discussion's but for its last sentence, on which the conclusion rests; what the
authors did and the first sentence of the summary are the abstract's. A section that would be left with nothing takes
one statement, led in by words of its own.
"""

from __future__ import annotations

import re

from citeloom.experiment import Experiment, SectionKind
from citeloom.models.extractive.plans import Paragraph, Statement, led, paragraphs, plain, questions, verdict_is

_OWN_WORK = re.compile(r"(?:We|Here,? we|Our|This (?:paper|study|work|article|report)|In this (?:paper|study|work))\b")

_SUPPORTS = {
    "The hypothesis is supported": "The experiment supports the hypothesis.",
    "The hypothesis is supported in part": "The experiment supports the hypothesis in part.",
    "The hypothesis is not supported": "The experiment does not support the hypothesis.",
    "The experiment does not decide the hypothesis": "Whether the hypothesis holds is left undecided.",
}


def share_of(kind: SectionKind, experiment: Experiment) -> list[Paragraph]:
    """The paragraphs of a section of a whole paper; those for which the experiment has no text are left out."""
    match kind:
        case "introduction":
            made = _introduction(experiment)
        case "discussion":
            made = _discussion(experiment)
        case "conclusion":
            made = _conclusion(experiment)
        case "abstract":
            made = _abstract(experiment)
        case _:
            return paragraphs(kind, experiment)
    return [paragraph for paragraph in made if paragraph]


def _described(experiment: Experiment) -> tuple[Paragraph, Paragraph]:
    """What the description says of the field, and what of the work at hand; the field has at least one sentence."""
    described = plain(experiment.paper_concept.description)
    own = tuple(item for item in described[1:] if _OWN_WORK.match(item.text))
    return tuple(item for item in described if item not in own), own


def _introduction(experiment: Experiment) -> list[Paragraph]:
    field, _ = _described(experiment)
    return [field, questions(experiment), led("We put forward this hypothesis:", experiment.hypothesis.description)]


def _discussion(experiment: Experiment) -> list[Paragraph]:
    reasoning = plain(experiment.reasoning)
    supports = _SUPPORTS.get(verdict_is(experiment), "")
    answer = (Statement(supports, ""),) if supports else ()
    told = reasoning[:-1] or reasoning
    if not told and not answer:
        told = led("What is to be explained is this:", experiment.results or experiment.summary)[:1]
    # The sources stand behind the first finding, and may bear on the hypothesis that it answers.
    hypothesis = experiment.hypothesis.description
    first = tuple(Statement(item.text, f"{hypothesis} {item.about}".strip()) for item in told[:1])
    # The introduction asks and the results tell: here stands what earlier work has to say to it.
    beside = (*questions(experiment)[1:], *plain(experiment.results))
    return [(*answer, *first, *told[1:]), tuple(Statement("", item.about) for item in beside)]


def _conclusion(experiment: Experiment) -> list[Paragraph]:
    opening = verdict_is(experiment)
    answer = (Statement(f"{opening}.", ""),) if opening else ()
    reasoning, summary = plain(experiment.reasoning), plain(experiment.summary)
    told = (*(reasoning[-1:] if len(reasoning) > 1 else ()), *summary[1:])
    if not told:
        told = led("What was found comes to this:", _any_of(experiment))[:1]
    return [(*answer, *told)]


def _abstract(experiment: Experiment) -> list[Paragraph]:
    _, own = _described(experiment)
    summary = plain(experiment.summary)[:1] or led("In short, this was found:", _any_of(experiment))[:1]
    return [tuple(Statement(item.text, "") for item in (*own, *summary))]


def _any_of(experiment: Experiment) -> str:
    """What was found, from the first field that tells it."""
    told = (experiment.summary, experiment.results, experiment.reasoning, experiment.paper_concept.description)
    return next((text for text in told if plain(text)), "")
