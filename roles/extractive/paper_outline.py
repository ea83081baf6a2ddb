"""Assigns the experiment's statements to the sections of a whole paper, so that none is repeated.

Written separately, a discussion, a conclusion and an abstract each report the findings. In one paper the results
report them; the reasoning goes to the discussion except for its end, on which the conclusion rests; what the authors
did and the beginning of the summary go to the abstract. A section that would be left empty takes one statement, with a
lead-in of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from ...experiment import Experiment, SectionKind
from ...text.normalize import plain_wording
from ...text.sentences import sentence_spans
from .section_outlines import (
    EXPECTED,
    LEADS,
    OutlineStatement,
    Paragraph,
    failed,
    mention_of_figures,
    metrics,
    paragraphs,
    plain,
    questions,
    verdict,
    verdict_is,
    with_lead_in,
)

_OWN_WORK = re.compile(r"(?:We|Here,? we|Our|This (?:paper|study|work|article|report)|In this (?:paper|study|work))\b")

# A sentence with such a beginning depends on the one before it.
_LEANS = re.compile(
    r"(?:The (?:same|latter|former|other)|This|These|Those|That|Such|It|They|Both|Neither|Either|But|However|Yet|Also"
    r"|Thus|Hence|Therefore|Here|There|Again|And|So|Moreover|Furthermore|In contrast|Instead)\b"
)

_SUPPORTS = {
    "The hypothesis is supported": "The experiment supports the hypothesis.",
    "The hypothesis is supported in part": "The experiment supports the hypothesis in part.",
    "The hypothesis is not supported": "The experiment does not support the hypothesis.",
    "The experiment does not decide the hypothesis": "Whether the hypothesis holds is left undecided.",
}


# The lead-in for the single statement of a section that would otherwise be empty.
_LEADS: Mapping[SectionKind, str] = {
    "introduction": "The starting point is this:",
    "methods": "The work rests on this:",
    "results": "What came out is this:",
    "discussion": "What is to be explained is this:",
    "conclusion": "What was found comes to this:",
    "abstract": "In short, this was found:",
}

_LED = re.compile(
    r"(?:Step \d{1,3}|"
    + "|".join(re.escape(lead.rstrip(":")) for lead in (*LEADS, *_LEADS.values(), *_SUPPORTS))
    + r"): "
)


def share_of(kind: SectionKind, experiment: Experiment, said: Collection[str]) -> list[Paragraph]:
    """The paragraphs of a section of a whole paper, at least one with text.

    Args:
        kind: the section.
        experiment: its statements are distributed.
        said: the sentences of earlier sections, in plain wording; none of them is repeated.
    """
    known = set(said)

    def new(item: OutlineStatement) -> bool:
        # A list or a table has one sentence per line.
        spans = sentence_spans(item.text) if item.block else [(0, len(item.text))]
        wordings = {plain_wording(item.text[start:end]) for start, end in spans}
        stands = not item.text or not wordings <= known
        known.update(wordings)
        return stands

    left = [tuple(_below_section(item) for item in paragraph if new(item)) for paragraph in _SHARES[kind](experiment)]
    if not any(item.text for paragraph in left for item in paragraph):
        stated = with_lead_in(_LEADS[kind], _any_of(experiment))
        left.insert(0, stated[: 2 if stated[1:2] and stated[1].block else 1])
    return [paragraph for paragraph in left if paragraph]


def without_lead(sentence: str) -> str:
    """A sentence without a lead-in of ours ("Step 2:", "We put forward this hypothesis:"), if it has one."""
    lead = _LED.match(sentence)
    return sentence[lead.end() :] if lead else sentence


def _below_section(item: OutlineStatement) -> OutlineStatement:
    """The user's headings are placed below that of the section, which is one level lower in a paper."""
    heading = item.block and item.text.startswith("#") and not item.text.startswith("######")
    return replace(item, text=f"#{item.text}") if heading else item


def _described(experiment: Experiment) -> tuple[Paragraph, Paragraph]:
    """The part of the description about the field, and the part about this work; the field has at least a sentence."""
    described = plain(experiment.paper_concept.description)
    own = next((n for n, item in enumerate(described) if n and _OWN_WORK.match(item.text)), len(described))
    return described[:own], described[own:]


def _reasoned(experiment: Experiment) -> tuple[Paragraph, Paragraph]:
    """The reasoning without its end, and the end if it can stand alone; the beginning has at least a sentence."""
    reasoning = plain(experiment.reasoning)
    cut = max((n for n, item in enumerate(reasoning) if n and not _LEANS.match(item.text)), default=len(reasoning))
    return reasoning[:cut], reasoning[cut:]


def _summed_up(experiment: Experiment) -> tuple[Paragraph, Paragraph]:
    """The beginning of the summary, and the rest from where it can stand alone."""
    summary = plain(experiment.summary)
    cut = next((n for n, item in enumerate(summary) if n and not _LEANS.match(item.text)), len(summary))
    return summary[:cut], summary[cut:]


def _introduction(experiment: Experiment) -> list[Paragraph]:
    field, own = _described(experiment)
    # What the authors did goes to abstract and methods; comparable work of others belongs here.
    described = (*field, *(OutlineStatement("", item.about) for item in own))
    approach = experiment.hypothesis.method_combination
    expected = with_lead_in(EXPECTED, experiment.hypothesis.description)
    return [described, questions(experiment), (*expected, *([OutlineStatement("", approach)] if approach else []))]


def _methods(experiment: Experiment) -> list[Paragraph]:
    return paragraphs("methods", experiment)


def _results(experiment: Experiment) -> list[Paragraph]:
    stated = failed("results", experiment) or plain(experiment.results) or metrics(experiment)
    return [stated, mention_of_figures(experiment)]


def _discussion(experiment: Experiment) -> list[Paragraph]:
    reasons, _ = _reasoned(experiment)
    supports = _SUPPORTS.get(verdict_is(experiment), "")
    answer = failed("discussion", experiment) or ((OutlineStatement(supports, ""),) if supports else ())
    # The sources follow the first finding, and may be relevant to the hypothesis that it answers.
    hypothesis = experiment.hypothesis.description
    first = tuple(replace(item, about=f"{hypothesis} {item.about}".strip()) for item in reasons[:1])
    # The introduction asks and the results answer: this is the place for what earlier work says about it.
    beside = (*questions(experiment)[1:], *plain(experiment.results))
    return [(*answer, *first, *reasons[1:]), tuple(OutlineStatement("", item.about) for item in beside)]


def _conclusion(experiment: Experiment) -> list[Paragraph]:
    untested = failed("conclusion", experiment)
    return [(*untested, *verdict(experiment), *_reasoned(experiment)[1], *_summed_up(experiment)[1])]


def _abstract(experiment: Experiment) -> list[Paragraph]:
    _, own = _described(experiment)
    stated = (*own, *failed("abstract", experiment), *_summed_up(experiment)[0])
    return [tuple(replace(item, about="") for item in stated)]


_SHARES: Mapping[SectionKind, Callable[[Experiment], list[Paragraph]]] = {
    "introduction": _introduction,
    "methods": _methods,
    "results": _results,
    "discussion": _discussion,
    "conclusion": _conclusion,
    "abstract": _abstract,
}


def _any_of(experiment: Experiment) -> str:
    """The findings, from the first field that states them."""
    fields = (experiment.summary, experiment.results, experiment.reasoning, experiment.paper_concept.description)
    return next((text for text in fields if plain(text)), "")
