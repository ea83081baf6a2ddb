"""The result types of checks: rule, severity and the text concerned.

A check is a function of the text, the evidence and the experiment that returns findings and never raises. Its spans
refer to the text it was given, with normalised markers (`normalise_markers`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from typing_extensions import TypedDict  # as in `graph/state.py`, which holds these

from ...documents import Evidence
from ...documents.marker_escaping import unescape
from ...plurals import join_words
from ...text.words import read_rules, shorten
from ..markers import MARKER, MARKER_LIST, CitedSentence, marker_ids

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
    "not-as-preferred",
    "quote-differs",
]
Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """The severity of a rule, whether its findings span whole sentences, and what the writer should do about them (the
    message of a finding is for the reader)."""

    severity: Severity
    of_sentence: bool = False
    remedy: str = ""


# The rules by name; `finding_rules.toml` explains the severities.
RULES: Final[Mapping[str, RuleSpec]] = {
    name: RuleSpec(**spec) for name, spec in read_rules(__file__, "finding_rules")["rules"].items()
}
SHOWN = 80


class FindingRecord(TypedDict):
    """A finding as plain data: its span is None if it concerns the whole text; `ids` lists the evidence it names."""

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

    @classmethod
    def about(cls, sentence: CitedSentence, rule: Rule, said: str, ids: tuple[str, ...] = ()) -> Finding:
        """A finding about a sentence: a message that quotes the sentence and continues with `said`."""
        return cls(rule, f'"{shorten_words(sentence.text)}" {said}', (sentence.start, sentence.end), ids)

    @property
    def severity(self) -> Severity:
        return RULES[self.rule].severity

    def as_dict(self) -> FindingRecord:
        return {
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "start": self.span[0] if self.span else None,
            "end": self.span[1] if self.span else None,
            "ids": list(self.ids),
        }


def for_writer(finding: FindingRecord) -> str:
    """The finding for the repairing writer: its message and what to do about it."""
    return f"{finding['message']} {RULES[finding['rule']].remedy}".rstrip()


_REPEATED: Final = re.compile(r"(\([^()\s]+\))(?: ?\1)+")


def for_reader(message: str, evidence: Mapping[str, Evidence]) -> str:
    """Replace the markers of a message: in quoted words by `(key)`, elsewhere by `key, page 4`; in a list each once."""
    quoted, mark, said = message.rpartition('" ')

    def key_of(match: re.Match[str]) -> str:
        found = evidence.get(match[1])
        return f"({found.key})" if found else match[0]

    def place_of(name: str) -> str:
        found = evidence.get(name)
        return f"[{name}]" if found is None else found.key if found.page is None else f"{found.key}, page {found.page}"

    def places_of(markers: re.Match[str]) -> str:
        return join_words([*dict.fromkeys(map(place_of, marker_ids(markers[0])))])

    return _REPEATED.sub(r"\1", MARKER.sub(key_of, quoted)) + mark + MARKER_LIST.sub(places_of, said)


def shorten_words(words: str) -> str:
    """Shorten the words of a draft to one line for a message."""
    return shorten(unescape(words), SHOWN)
