"""Keeps the best version of each sentence after a repair.

An edit is reverted on its own when its sentence is no better, or when it makes a neighbouring sentence worse.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..citations.checks.findings import Finding, FindingRecord
from ..citations.markers import CitedSentence, sentences
from .sentence_repairs import BLANK_LINE, IDLE, SHOWN_IN_REPAIR, apply_edits, findings_in, is_heading
from .state import Attempt, EditRecord

Weight = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Settled:
    """The draft with the edits that were kept, its findings, and how many edits were kept and reverted."""

    text: str
    findings: list[FindingRecord]
    kept: int
    taken_back: int


def settle(before: Attempt, evaluate: Callable[[str], list[FindingRecord]]) -> Settled:
    """Keep the edits that improve their sentence without making another one worse, and revert the others."""
    text, edits = before["draft"]["text"], list(before.get("edits", ()))
    old = sentences(text)
    weights = [_weight(found) for found in findings_in(before["findings"], old, text)]
    given = len(edits)
    while edits:
        new = apply_edits(text, edits)
        findings = evaluate(new)
        back = _edits_to_revert(text, old, weights, edits, new, findings, before["findings"])
        if not back:
            return Settled(new, findings, len(edits), given - len(edits))
        edits = [edit for place, edit in enumerate(edits) if place not in back]
    return Settled(text, before["findings"], 0, given)


def placed_in(text: str, judged: str, findings: Sequence[Finding]) -> list[FindingRecord]:
    """Findings of the judged text with their spans mapped to the draft, which still contains foreign citations."""
    if text == judged:
        return [finding.as_dict() for finding in findings]
    drafted, seen = sentences(text), sentences(judged)
    by_text = {sentence.text: sentence for sentence in drafted}
    starts = [sentence.start for sentence in seen]
    records: list[FindingRecord] = []
    for finding in findings:
        record = finding.as_dict()
        if finding.span is not None:
            place = max(0, bisect_right(starts, finding.span[0]) - 1)
            same = by_text.get(seen[place].text) or (drafted[place] if len(drafted) == len(seen) else None)
            record["start"], record["end"] = (same.start, same.end) if same else (None, None)
        records.append(record)
    return records


def _edits_to_revert(
    text: str,
    old: Sequence[CitedSentence],
    weights: Sequence[Weight],
    edits: Sequence[EditRecord],
    new: str,
    findings: Sequence[FindingRecord],
    before: Sequence[FindingRecord],
) -> set[int]:
    """Indices of the edits that are no better, or that made another sentence or the whole draft worse."""
    after = sentences(new)
    found = findings_in(findings, after, new)
    edited = {edit["start"]: place for place, edit in enumerate(edits)}
    back: set[int] = set()
    at = 0
    for sentence, weight in zip(old, weights, strict=True):
        place = edited.get(sentence.start)
        if place is None and is_heading(text, sentence):
            at += at < len(after) and after[at].text == sentence.text
            continue
        count = 1 if place is None else len(sentences(edits[place]["text"]))
        now = _weight([item for put in found[at : at + count] for item in put])
        at += count
        if place is not None and now >= weight:
            back.add(place)
        elif place is None and now > weight:
            back |= _edits_in_paragraph(text, sentence, edits)
    if _whole_draft_rules(findings) - _whole_draft_rules(before):
        removals = {place for place, edit in enumerate(edits) if not edit["text"]}
        back |= removals or set(range(len(edits)))
    return back


def _edits_in_paragraph(text: str, sentence: CitedSentence, edits: Sequence[EditRecord]) -> set[int]:
    """Indices of the edits in the same paragraph as a sentence; all edits when there are none."""
    start = max((match.end() for match in BLANK_LINE.finditer(text, 0, sentence.start)), default=0)
    following = BLANK_LINE.search(text, sentence.end)
    end = following.start() if following else len(text)
    near = {place for place, edit in enumerate(edits) if start <= edit["start"] < end}
    return near or set(range(len(edits)))


def _whole_draft_rules(findings: Sequence[FindingRecord]) -> set[str]:
    """Rules of the findings, notes aside, that concern the whole draft rather than a sentence."""
    return {item["rule"] for item in findings if item["start"] is None and item["severity"] != "note"}


def _weight(findings: Sequence[FindingRecord]) -> Weight:
    """How bad a sentence is: the numbers of its errors, warnings and optional improvements."""
    severities = [item["severity"] for item in findings]
    notes = sum(item["rule"] == IDLE or item["rule"] in SHOWN_IN_REPAIR for item in findings)
    return severities.count("error"), severities.count("warning"), notes
