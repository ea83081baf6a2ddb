"""What a check found in a draft: the rule, how grave it is, and the words at fault.

A check is a function of the text, the evidence and the experiment that returns findings and raises nothing.
Its spans refer to the text that it was given, with markers in their normal form (`normalise_markers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from typing_extensions import TypedDict  # as in graph/state.py, which holds these

from citeloom.documents.literal_markers import as_written

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


def shown(words: str) -> str:
    """Words of a draft in a message: one line, not longer than a message bears."""
    flat = " ".join(as_written(words).split())
    return flat if len(flat) <= SHOWN else f"{flat[: SHOWN - 1]}…"
