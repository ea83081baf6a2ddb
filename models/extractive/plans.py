"""What each section says of the experiment, paragraph by paragraph, in the experiment's own words.

A plan holds statements only; which source is brought beside which statement is decided afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from citeloom.documents import Category
from citeloom.documents.sentences import sentence_spans
from citeloom.experiment import Experiment, SectionKind
from citeloom.models.extractive.matching import Limits

_CITATION = re.compile(
    r"\[@[^\]]*\]|@\w+|\\cite|\[\d+(?:[,;–\- ]+\d+)*\]|\bet al\b"
    r"|\([A-Z][\w-]+(?: (?:and|&) [A-Z][\w-]+)?,? (?:19|20)\d\d[a-z]?\)"
)
_STEP = re.compile(r"(?:^|(?<=\s))\d{1,2}[.)]\s+(?=[A-Z\[])")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence as it will stand in the section; `about` is the text that sources are matched with.

    An `about` that is empty takes no source. One without `text` is there for its sources only.
    """

    text: str
    about: str


Paragraph = tuple[Statement, ...]


LIMITS: Mapping[SectionKind, Limits] = {
    "introduction": Limits(section=7),
    "methods": Limits(section=4),
    "results": Limits(section=4),
    "discussion": Limits(section=7),
    "conclusion": Limits(section=3, fact=1),
    "abstract": Limits(section=0),  # an abstract stands alone; journals allow no citations in it
}

WANTED_PAPERS: Mapping[SectionKind, int] = {"introduction": 4, "discussion": 4}

PREFERRED: Mapping[SectionKind, Mapping[Category, float]] = {
    "introduction": {Category.INTRODUCTION: 0.02, Category.RELATED_WORK: 0.02, Category.ABSTRACT: 0.01},
    "methods": {Category.METHOD: 0.03},
    "results": {Category.EVALUATION: 0.03},
    "discussion": {Category.CONCLUSION: 0.02, Category.EVALUATION: 0.02, Category.ABSTRACT: 0.01},
    "conclusion": {Category.CONCLUSION: 0.02, Category.ABSTRACT: 0.01},
    "abstract": {Category.ABSTRACT: 0.01, Category.INTRODUCTION: 0.01},
}

# A step of a plan or a line of results is about the work at hand; a source beside it must be nearer than usual.
STRICTER: Mapping[SectionKind, float] = {"methods": 0.06, "results": 0.06}

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
    """The paragraphs of a section; those for which the experiment has no text are left out."""
    made = _PLANS[kind](experiment)
    return [paragraph for paragraph in made if paragraph]


def sentences(text: str) -> list[str]:
    """The sentences of an experiment's field, on one line each and closed by a full stop.

    Sentences that hold a citation of their own are left out: what the user cited is not ours to vouch for.
    """
    found = []
    flat = " ".join(text.split())
    for start, end in sentence_spans(flat):
        sentence = flat[start:end].strip()
        if sentence and not _CITATION.search(sentence):
            found.append(sentence if sentence[-1] in ".?!" else f"{sentence.rstrip(';:,')}.")
    return found


def plain(text: str) -> Paragraph:
    """The sentences of a field, each a statement of its own."""
    return tuple(Statement(sentence, sentence) for sentence in sentences(text))


def led(lead: str, text: str) -> Paragraph:
    """Statements of which the first is led in ("We hypothesise that ..."), where `text` is a sentence."""
    stated = plain(text)
    if not stated:
        return ()
    first = stated[0]
    return (Statement(f"{lead} {lowered(first.text)}", first.about), *stated[1:])


def lowered(sentence: str) -> str:
    """A sentence made fit to follow other words: its first letter is lowered unless it opens with a name."""
    first = sentence.split(maxsplit=1)[0]
    common = first.lower() in {
        "a",
        "an",
        "the",
        "for",
        "in",
        "on",
        "of",
        "by",
        "with",
        "when",
        "if",
        "each",
        "both",
        "all",
        "some",
        "most",
        "combining",
        "using",
        "training",
        "adding",
        "there",
        "this",
        "these",
        "that",
        "how",
        "does",
        "do",
        "is",
        "are",
        "can",
        "which",
        "what",
        "why",
        "after",
        "under",
        "within",
        "among",
        "averaging",
        "increasing",
        "reducing",
    }
    return sentence[0].lower() + sentence[1:] if common else sentence


def verdict_is(experiment: Experiment) -> str:
    """The verdict as the beginning of a sentence, without its end; empty when it is in words of the user's own."""
    word = experiment.verdict.strip().lower()
    return next((text for marks, text in _VERDICTS if any(word.startswith(mark) for mark in marks)), "")


def verdict(experiment: Experiment) -> Paragraph:
    """The answer to the hypothesis, which is said again where it is one sentence."""
    opening = verdict_is(experiment)
    hypothesis = sentences(experiment.hypothesis.description)
    if not opening:
        return plain(experiment.verdict)
    if len(hypothesis) != 1:
        return (Statement(f"{opening}.", ""),)
    return (Statement(f"{opening}: {lowered(hypothesis[0])}", ""),)


def questions(experiment: Experiment) -> Paragraph:
    """The open questions behind a sentence that counts them."""
    asked = [question for text in experiment.paper_concept.open_questions for question in sentences(text)]
    if not asked:
        return ()
    opening = "One question is open." if len(asked) == 1 else f"{_number(len(asked))} questions are open."
    return (Statement(opening, ""), *(Statement(question, question) for question in asked))


def _number(count: int) -> str:
    words = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
    return words[count] if count < len(words) else str(count)


def _approach(experiment: Experiment) -> Paragraph:
    text = re.sub(r"\s*->\s*", ", then ", " ".join(experiment.hypothesis.method_combination.split()))
    stated = sentences(text)
    if not stated:
        return ()
    return (Statement(f"In outline, the approach is: {' '.join(stated)}", experiment.hypothesis.method_combination),)


def _steps(experiment: Experiment) -> Paragraph:
    flat = " ".join(experiment.experimental_plan.split())
    steps = [step.strip() for step in _STEP.split(flat) if step.strip()]
    if len(steps) < 2:
        return plain(flat)
    made = []
    for number, step in enumerate(steps, start=1):
        body = " ".join(sentences(step))
        if body:
            made.append(Statement(f"Step {number}: {body}", body))
    return (Statement("The work was planned in these steps.", ""), *made)


def captions(experiment: Experiment) -> Paragraph:
    """A sentence for each figure that has a caption."""
    titles = [sentence for caption in experiment.captions() for sentence in sentences(caption)[:1]]
    return tuple(Statement(f"Figure {number} shows {_inside(caption)}", "") for number, caption in enumerate(titles, 1))


def _inside(caption: str) -> str:
    """A caption as the end of a sentence: lower case at its start, but for abbreviations."""
    return caption[0].lower() + caption[1:] if caption[1:2].islower() else caption


def metrics(experiment: Experiment) -> Paragraph:
    """The metrics in one sentence."""
    values = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in experiment.metrics.items()
        if isinstance(value, int | float | str) and not isinstance(value, bool)
    ]
    if not values:
        return ()
    return (Statement(f"The measured values are: {'; '.join(values)}.", ""),)


def _introduction(experiment: Experiment) -> list[Paragraph]:
    description = plain(experiment.paper_concept.description)
    return [
        description,
        questions(experiment),
        (*led("We put forward this hypothesis:", experiment.hypothesis.description), *_approach(experiment)),
    ]


def _methods(experiment: Experiment) -> list[Paragraph]:
    return [_approach(experiment), _steps(experiment)]


def _results(experiment: Experiment) -> list[Paragraph]:
    stated = plain(experiment.results)
    return [stated or metrics(experiment) or plain(experiment.reasoning), captions(experiment)]


def _discussion(experiment: Experiment) -> list[Paragraph]:
    reasoning = plain(experiment.reasoning)
    # The sources stand behind the first finding, and may bear on the hypothesis that it answers.
    first = tuple(
        Statement(item.text, f"{experiment.hypothesis.description} {item.about}".strip()) for item in reasoning[:1]
    )
    return [
        (*verdict(experiment), *first),
        reasoning[1:],
        led("In figures, the outcome is this:", experiment.results) if not reasoning else plain(experiment.results),
        questions(experiment),
        plain(experiment.summary),
    ]


def _conclusion(experiment: Experiment) -> list[Paragraph]:
    about = plain(experiment.paper_concept.description)[-1:]
    return [(*about, *verdict(experiment), *plain(experiment.reasoning)), plain(experiment.summary)]


def _abstract(experiment: Experiment) -> list[Paragraph]:
    results = plain(experiment.results) or plain(experiment.reasoning)
    return [
        (
            *plain(experiment.paper_concept.description)[:2],
            *led("We put forward this hypothesis:", experiment.hypothesis.description)[:1],
            *(Statement(item.text, "") for item in results[:3]),
            *plain(experiment.summary)[:1],
        )
    ]


_PLANS = {
    "introduction": _introduction,
    "methods": _methods,
    "results": _results,
    "discussion": _discussion,
    "conclusion": _conclusion,
    "abstract": _abstract,
}
