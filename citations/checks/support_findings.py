"""Turns a judge's verdicts on citations into findings that name sentence, evidence and reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ...roles.protocols import CitedClaim, Source, Verdict, VerdictLabel
from ..markers import CitedSentence, sentences, sentences_with_markers
from ..spans import line_start
from .absence import states_only_absence
from .findings import Finding, Rule
from .foreign_citations import NEEDED

# A sentence with its markers, and the evidence id.
PairKey = tuple[str, str]

BY_SEARCHES = Verdict("unjudged", "what sources do not report is judged by the searches, not by a passage")

_RULES: Mapping[VerdictLabel, Rule] = {
    "unsupported": "unsupported",
    "contradicted": "contradicted",
    "partly": "partly-supported",
    "off-topic": "off-topic",
    "unjudged": "unjudged",
}
_SAID: Mapping[Rule, str] = {
    "unsupported": "is not supported by {ids}{reason}; say no more than is said there, cite evidence that says it, or"
    " take the sentence out with its marker.",
    "contradicted": "is contradicted by {ids}{reason}; say what is said there, or take the sentence out with its"
    " marker.",
    "partly-supported": "is supported in part only by {ids}{reason}.",
    "off-topic": "may be on another topic than {ids}{reason}; whether it is supported was not judged.",
    "unjudged": "was not compared with {ids}{reason}.",
    "idle-marker": "gains nothing from {ids}, which bears out no part of it; drop that marker and keep the sentence.",
}
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")


def cited_claims(text: str, sources: Sequence[Source]) -> dict[str, CitedClaim]:
    """All cited sentences of a normalised text with their sources, in reading order, each once.

    Sentences that only say what sources do not report are skipped: see `absence.py`.
    """
    known = {source.evidence.id: source for source in sources}
    claims: dict[str, CitedClaim] = {}
    heading, last = "", None
    for sentence in sentences(text):
        if _HEADING.match(text, line_start(text, sentence.start)):
            heading, last = sentence.text, None
            continue
        before = last.text if last and not _BLANK_LINE.search(text, last.end, sentence.start) else heading
        cited = tuple(known[identifier] for identifier in sentence.ids if identifier in known)
        if cited and sentence.text not in claims and not states_only_absence(sentence):
            claims[sentence.text] = CitedClaim(_plain(sentence.text), cited, _plain(before))
        # Only the first sentence of a section depends on its heading.
        heading, last = "", sentence
    return claims


def pairs_of_absence(text: str, sources: Sequence[Source]) -> list[PairKey]:
    """The cited statements of absence, which no passage can support, with each of their sources."""
    known = {source.evidence.id for source in sources}
    return [
        (sentence.text, identifier)
        for sentence in sentences_with_markers(text)
        if states_only_absence(sentence)
        for identifier in sentence.ids
        if identifier in known
    ]


def support_findings(text: str, verdicts: Mapping[PairKey, Verdict]) -> list[Finding]:
    """The findings of each cited sentence, in reading order: one per negative verdict, and one for markers that add
    nothing.
    """
    return [
        finding
        for sentence in sentences_with_markers(text)
        for finding in _of_sentence(
            sentence, {id: verdicts[sentence.text, id] for id in sentence.ids if (sentence.text, id) in verdicts}
        )
    ]


def _of_sentence(sentence: CitedSentence, verdicts: Mapping[str, Verdict]) -> Iterator[Finding]:
    against = any(verdict.adds == "contradicts" for verdict in verdicts.values())
    grouped: dict[tuple[Rule, str], list[str]] = {}
    for identifier, verdict in verdicts.items():
        rule = _RULES.get(verdict.label)
        # If one source contradicts, only that one is named.
        if rule and not (against and rule == "contradicted" and verdict.adds != "contradicts"):
            grouped.setdefault((rule, verdict.reason), []).append(identifier)
    for (rule, reason), ids in grouped.items():
        yield _finding(sentence, rule, ids, reason)
    idle = [identifier for identifier, verdict in verdicts.items() if verdict.adds == "idle"]
    # For a sentence that none of its sources supports, the finding above is enough.
    if idle and len(idle) < len(verdicts) and not any(verdict.label == "unsupported" for verdict in verdicts.values()):
        yield _finding(sentence, "idle-marker", idle)


def _finding(sentence: CitedSentence, rule: Rule, ids: Sequence[str], reason: str = "") -> Finding:
    because = f": {reason.rstrip('.')}" if reason else ""
    named = " and ".join(f"[{identifier}]" for identifier in ids)
    words = " ".join(sentence.text.split())
    message = f'"{words}" {_SAID[rule].format(ids=named, reason=because)}'
    return Finding(rule, message, (sentence.start, sentence.end), tuple(ids))


def _plain(sentence: str) -> str:
    return sentence.replace(NEEDED, "").strip()
