"""The result types of checks: rule, severity and the text concerned.

A check is a function of the text, the evidence and the experiment that returns findings and never raises. Its spans
refer to the text it was given, with normalised markers (`normalise_markers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from typing_extensions import TypedDict  # as in graph/state.py, which holds these

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
    "repeated-sentence": "warning",
    "orders-in-source": "note",
}
SHOWN = 80


class FindingRecord(TypedDict):
    """A finding as plain data; the span is None if it concerns the whole text."""

    rule: str
    severity: str
    message: str
    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem in a draft; `message` is one line that quotes the words, `span` locates them if possible."""

    rule: Rule
    message: str
    span: tuple[int, int] | None = None

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
        }


# Instructions to a writer for each rule; the message itself is meant for the reader of the text.
_REMEDIES: Final[dict[str, str]] = {
    "unknown-marker": "Cite only the evidence that was given, by its marker.",
    "foreign-citation": "Cite by the marker of the evidence, repeat a sentence of the experiment with its citation"
    " word for word, or reword without it.",
    "bare-marker": "Cite it by its marker in square brackets, and reword.",
    "citation-missing": "Cite the source that says so by its marker, or leave it out.",
    "no-citation": "Cite the evidence by its markers.",
    "number-not-found": "Use a number of theirs, cite the source that has it, or leave it out.",
    "copied-run": "Say it in your own words.",
    "repeated-sentence": "Say it in other words, or leave it out where nothing new is said.",
}


def for_writer(finding: FindingRecord) -> str:
    """The finding for the repairing writer: its message and what to do about it."""
    return f"{finding['message']} {_REMEDIES.get(finding['rule'], '')}".rstrip()


def shown(words: str) -> str:
    """Words of a draft shortened to one line for a message."""
    flat = " ".join(as_written(words).split())
    return flat if len(flat) <= SHOWN else f"{flat[: SHOWN - 1]}…"
