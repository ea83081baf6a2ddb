"""The text as it is shown: what failed replaced, marked, or with `strict` left out, and all that is told of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from citeloom.citations import Finding, Rendered, check_draft, neutralise, render
from citeloom.citations.marking import (
    CITES_NOTHING,
    MARKS,
    Mark,
    MarkedSentence,
    leave_out,
    marked_sentences,
    marks_of,
)
from citeloom.citations.support import PairKey, support_findings
from citeloom.config import CitationStyle
from citeloom.models.roles import Draft, SectionBrief, Source, Verdict

_OF_SENTENCES = frozenset(
    {"citation-missing", "unsupported", "contradicted", "partly-supported", "off-topic", "unjudged"}
)


@dataclass(frozen=True, slots=True)
class FinalText:
    """A text with markers, before its marks are put in.

    `replaced` was no citation of ours and is gone from it, `left` still stands in it and `out` was left out.
    """

    text: str
    replaced: tuple[Finding, ...]
    left: tuple[Finding, ...]
    out: tuple[MarkedSentence, ...]
    strict: bool

    @property
    def marks(self) -> list[Mark]:
        """What is put in where the text is rendered."""
        return marks_of(self.text, self.left)

    def findings(self, shown: Rendered) -> list[Finding]:
        """What is to be found in the rendered text, with its places there."""
        replaced = () if self.strict else self.replaced
        return [*(replace(finding, span=None) for finding in replaced), *(_moved(item, shown) for item in self.left)]

    def told(self) -> list[str]:
        """A line for each thing that was replaced, left out, marked or only found."""
        return [
            *(f"{'Left out of' if self.strict else 'Marked in'} the text: {item.message}" for item in self.replaced),
            *(f"Left out of the text: {line}" for item in self.out for line in item.found),
            *(f"{_lead(finding)}: {finding.message}" for finding in self.left),
        ]

    def left_out(self, sources: Sequence[Source], style: CitationStyle) -> list[dict[str, Any]]:
        """The sentences that were left out, as they would have been shown; numbers of references mean nothing alone."""
        shown: CitationStyle = "key" if style == "numeric" else style
        return [
            {
                "sentence": render(item.sentence.text, sources, shown).text,
                "marks": list(item.marks),
                "why": list(item.found or (CITES_NOTHING,)),
            }
            for item in self.out
        ]


def final_text(
    draft: Draft,
    brief: SectionBrief,
    sources: Sequence[Source],
    *,
    verdicts: Mapping[PairKey, Verdict],
    known_keys: Collection[str],
    strict: bool,
) -> FinalText:
    """The draft without what is no citation of ours, and what is wrong with it then; blocks.

    With `strict` it is without the sentences that fail as well, until none does: one that goes may be what another
    leaned on, such as the first mention of a number.
    """
    experiment = brief.experiment

    def check(text: str) -> list[Finding]:
        # Replacing may have mended more than it names, or less: what is told is what is left in the text.
        final = Draft(text, draft.truncated)
        found = check_draft(final, sources, kind=brief.kind, experiment=experiment, known_keys=known_keys)
        return [*found, *support_findings(text, verdicts)]

    text, replaced = neutralise(draft.text, sources, experiment.words(), known_keys=known_keys)
    text, left, out = _held_to(text, check, strict=strict, name=str(brief.kind))
    return FinalText(text, replaced, tuple(left), tuple(out), strict)


def _held_to(
    text: str, check: Callable[[str], list[Finding]], *, strict: bool, name: str
) -> tuple[str, list[Finding], list[MarkedSentence]]:
    out: list[MarkedSentence] = []
    while True:
        found = check(text)
        failing = marked_sentences(text, found) if strict else []
        if not failing:
            return text, found, out
        out += failing
        text = leave_out(text, failing)
        if not any(map(str.isalnum, text)):
            nothing = f"Nothing is left of the {name}: every sentence failed a check and was left out."
            return "", [Finding("empty", nothing)], out


def _moved(finding: Finding, shown: Rendered) -> Finding:
    if finding.span is None:
        return finding
    # A sentence's span has its mark in it, that of words in the sentence has not.
    whole = finding.rule in _OF_SENTENCES
    start, end = finding.span
    return replace(finding, span=(shown.moved(start), shown.moved(end)) if whole else shown.span(start, end))


def _lead(finding: Finding) -> str:
    if finding.severity == "note":
        return "Listed"
    return "Marked in the text" if finding.rule in MARKS and finding.span else "Left in the text"
