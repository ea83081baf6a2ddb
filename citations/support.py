"""What a judge found of a draft's citations, as findings that name sentence, evidence and reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from citeloom.citations.findings import Finding, Rule
from citeloom.citations.foreign import NEEDED
from citeloom.citations.markers import CitedSentence, sentences_with_markers
from citeloom.models.briefs import Source
from citeloom.models.roles import CitedPair, Verdict, VerdictLabel

# A sentence with its markers, and the id of the evidence.
PairKey = tuple[str, str]

_RULES: Mapping[VerdictLabel, Rule] = {
    "unsupported": "unsupported",
    "contradicted": "contradicted",
    "partly": "partly-supported",
    "off-topic": "off-topic",
    "unjudged": "unjudged",
}
_SAID: Mapping[Rule, str] = {
    "unsupported": "is not supported by [{id}]{reason}; say no more than that passage says, cite evidence that says it,"
    " or take the sentence out with its marker.",
    "contradicted": "is contradicted by [{id}]{reason}; say what that passage says, or take the sentence out with its"
    " marker.",
    "partly-supported": "is supported in part only by [{id}]{reason}.",
    "off-topic": "may be on another topic than [{id}]{reason}; whether it is supported was not judged.",
    "unjudged": "was not compared with [{id}]{reason}.",
}


def cited_pairs(text: str, sources: Sequence[Source]) -> dict[PairKey, CitedPair]:
    """Every cited sentence of a normalised text with each of its sources, in reading order, each pair once."""
    known = {source.evidence.id: source for source in sources}
    return {
        (sentence.text, identifier): CitedPair(sentence.text.replace(NEEDED, "").strip(), known[identifier])
        for sentence in sentences_with_markers(text)
        for identifier in sentence.ids
        if identifier in known
    }


def support_findings(text: str, verdicts: Mapping[PairKey, Verdict]) -> list[Finding]:
    """A finding for each cited sentence and evidence whose verdict is not good, in reading order."""
    return [
        _finding(sentence, identifier, verdict)
        for sentence in sentences_with_markers(text)
        for identifier in sentence.ids
        if (verdict := verdicts.get((sentence.text, identifier))) and verdict.label in _RULES
    ]


def _finding(sentence: CitedSentence, identifier: str, verdict: Verdict) -> Finding:
    rule = _RULES[verdict.label]
    reason = f": {verdict.reason.rstrip('.')}" if verdict.reason else ""
    # The sentence whole: a writer without a model takes out what a message names.
    words = " ".join(sentence.text.split())
    return Finding(
        rule, f'"{words}" {_SAID[rule].format(id=identifier, reason=reason)}', (sentence.start, sentence.end)
    )
