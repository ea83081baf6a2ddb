"""The result types of checks: rule, severity and the text concerned.

A check is a function of the text, the evidence and the experiment that returns findings and never raises. Its spans
refer to the text it was given, with normalised markers (`normalise_markers`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from typing_extensions import TypedDict  # as in `graph/state.py`, which holds these

from ...documents import Evidence
from ...documents.marker_escaping import as_written

Rule = Literal[
    "unknown-marker",
    "foreign-citation",
    "bare-marker",
    "empty",
    "truncated",
    "no-citation",
    "number-not-found",
    "copied-run",
    "citation-missing",
    "unsupported",
    "contradicted",
    "partly-supported",
    "idle-marker",
    "absence-unsearched",
    "off-topic",
    "unjudged",
    "one-sided",
    "other-side-unsaid",
    "repeated-sentence",
    "orders-in-source",
]
Severity = Literal["error", "warning", "note"]

# An error must not reach the reader; a warning is repaired if allowed, else reported; a note is only reported.
SEVERITY: dict[Rule, Severity] = {
    "unknown-marker": "error",
    "foreign-citation": "error",
    "bare-marker": "warning",
    "empty": "error",
    "truncated": "error",
    "no-citation": "warning",
    "number-not-found": "warning",
    "copied-run": "warning",
    "citation-missing": "warning",
    "unsupported": "warning",
    "contradicted": "warning",
    "partly-supported": "note",
    "idle-marker": "note",
    "absence-unsearched": "warning",
    "off-topic": "note",
    "unjudged": "note",
    "one-sided": "note",
    "other-side-unsaid": "note",
    "repeated-sentence": "warning",
    "orders-in-source": "note",
}
# Rules about a whole sentence, whose span it is; the others locate words in it, or concern the whole draft.
OF_SENTENCES: frozenset[str] = frozenset(
    {
        "citation-missing",
        "unsupported",
        "contradicted",
        "partly-supported",
        "idle-marker",
        "absence-unsearched",
        "off-topic",
        "unjudged",
        "repeated-sentence",
        "other-side-unsaid",
    }
)
SHOWN = 80


class FindingRecord(TypedDict):
    """A finding as plain data; the span is None if it concerns the whole text, `ids` the evidence that it names."""

    rule: str
    severity: str
    message: str
    start: int | None
    end: int | None
    ids: list[str]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem in a draft: a one-line message that quotes the words, their span if known, and evidence it names."""

    rule: Rule
    message: str
    span: tuple[int, int] | None = None
    ids: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        """The severity, determined by the rule."""
        return SEVERITY[self.rule]

    def as_dict(self) -> FindingRecord:
        """The plain form of state and JSON output."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "start": self.span[0] if self.span else None,
            "end": self.span[1] if self.span else None,
            "ids": list(self.ids),
        }


# Instructions to a writer for each rule; the message itself is meant for the reader of the text.
_REMEDIES: Final[dict[str, str]] = {
    "unknown-marker": "Cite only the evidence that was given, by its marker.",
    "foreign-citation": "Cite by the marker of the evidence, repeat a sentence of the experiment with its citation"
    " word for word, or reword without it.",
    "bare-marker": "Cite it by its marker in square brackets, and reword.",
    "citation-missing": "Cite the source that says so by its marker, or leave it out.",
    "no-citation": "Cite the evidence by its markers.",
    "number-not-found": "Use one of their numbers, cite the source that has it, or leave it out.",
    "other-side-unsaid": "Where the words do disagree, say both sides with both markers.",
    "copied-run": "Say it in your own words.",
    "repeated-sentence": "Say it in other words, or leave it out where nothing new is said.",
}


_MARKER: Final = re.compile(r"\[(E[1-9]\d{0,5})\]")


def sentence_spans_of(findings: Sequence[FindingRecord]) -> list[tuple[int, int]]:
    """The spans of the sentences that fail as a whole."""
    return [
        (start, end)
        for finding in findings
        if finding["rule"] in OF_SENTENCES and (start := finding["start"]) is not None and (end := finding["end"])
    ]


def for_writer(finding: FindingRecord) -> str:
    """The finding for the repairing writer: its message and what to do about it."""
    return f"{finding['message']} {_REMEDIES.get(finding['rule'], '')}".rstrip()


def for_reader(message: str, evidence: Mapping[str, Evidence]) -> str:
    """A message, or a sentence, with its markers replaced by keys and pages, since readers never see markers.

    In the words that it quotes a marker becomes `(key)`, after them `key, page 4`; unknown markers stay.
    """
    quoted, mark, said = message.rpartition('" ')

    def cited(match: re.Match[str]) -> str:
        found = evidence.get(match[1])
        return f"({found.key})" if found else match[0]

    def named(match: re.Match[str]) -> str:
        found = evidence.get(match[1])
        return match[0] if found is None else found.key if found.page is None else f"{found.key}, page {found.page}"

    return _MARKER.sub(cited, quoted) + mark + _MARKER.sub(named, said)


def shown(words: str) -> str:
    """Words of a draft shortened to one line for a message."""
    flat = " ".join(as_written(words).split())
    return flat if len(flat) <= SHOWN else f"{flat[: SHOWN - 1]}…"
