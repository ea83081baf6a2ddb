"""What a check found in a draft: the rule, how grave it is, and the words at fault.

A check is a function of the text, the evidence and the experiment that returns findings and raises nothing.
Its spans refer to the text that it was given, with markers in their normal form (`normalise_markers`).
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

# An error may not reach the reader; a warning is repaired when that is allowed, else told; a note is only told.
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
    """A finding as plain data; the span is None when it concerns the whole text."""

    rule: str
    severity: str
    message: str
    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with a draft; `message` is a line that names the words, `span` places them where it can."""

    rule: Rule
    message: str
    span: tuple[int, int] | None = None

    @property
    def severity(self) -> Severity:
        """How grave it is, which the rule decides."""
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


# What a writer is asked to do about a finding; the message itself is for the reader of the text.
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
    """The finding as the one is told who is to repair the text: its message, and what to do about it."""
    return f"{finding['message']} {_REMEDIES.get(finding['rule'], '')}".rstrip()


def shown(words: str) -> str:
    """Words of a draft in a message: one line, not longer than a message bears."""
    flat = " ".join(as_written(words).split())
    return flat if len(flat) <= SHOWN else f"{flat[: SHOWN - 1]}…"
