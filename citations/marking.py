"""Marks or removes sentences that still fail after repair; marks are inserted on rendering, so spans stay valid."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..documents.blocks import is_table_rule
from ..text.sentences import replace_spans
from .checks.fabricated_citations import NEEDED
from .checks.findings import Finding, Rule
from .markers import CitedSentence, sentences
from .quotations import quoted_spans

MARKS: Final[Mapping[Rule, str]] = {
    "unsupported": "[not supported]",
    "contradicted": "[contradicted by its source]",
    "number-not-found": "[number not found]",
    "absence-unsearched": "[not searched for]",
    "copied-run": "[copied words]",
    "citation-missing": NEEDED,
}
CITES_NOTHING: Final = "It cites something that is not in the evidence."

_STOPS: Final = ".!?\u2026\u3002\uff1f\uff01"
_LINE = re.compile(r"[^\n]*\n?")
# What remains of a line after its sentences were removed: a list bullet, quotation mark or heading prefix.
_BARE = re.compile(r"[ \t>]*+(?:#{1,6}|[-*+]|\d{1,3}[.)])?[ \t>]*+\n?")
_HEADING = re.compile(r"[ \t]*(#{1,6})[ \t]")
_TABLE = re.compile(r"(?m)(?:^[ \t]*\|.*(?:\n|\Z))+")


@dataclass(frozen=True, slots=True)
class Mark:
    """Our own words to insert at a position of a text, after a blank."""

    position: int
    words: str


@dataclass(frozen=True, slots=True)
class MarkedSentence:
    """A sentence with its marks and a line per finding; one that already contains a mark may have none."""

    sentence: CitedSentence
    marks: tuple[str, ...]
    found: tuple[str, ...]


def marked_sentences(text: str, findings: Sequence[Finding]) -> list[MarkedSentence]:
    """The failing sentences of a normalised text, including those that already contain a mark, in order."""
    found = sentences(text)
    starts = [sentence.start for sentence in found]
    failing: dict[int, list[Finding]] = {}  # by index of their sentence
    for finding in findings:
        if finding.rule not in MARKS or not finding.span:
            continue
        start, end = finding.span
        for index in range(max(0, bisect_right(starts, start) - 1), bisect_left(starts, end)):
            shared = text[max(start, found[index].start) : min(end, found[index].end)]
            if any(map(str.isalnum, shared)):
                failing.setdefault(index, []).append(finding)
    marked = []
    for index, sentence in enumerate(found):
        here = failing.get(index, [])
        there = [mark for mark in MARKS.values() if mark in sentence.text]
        marks = dict.fromkeys([*there, *(MARKS[finding.rule] for finding in here)])
        if marks:
            marked.append(MarkedSentence(sentence, tuple(marks), tuple(finding.message for finding in here)))
    return marked


def missing_marks(text: str, findings: Sequence[Finding]) -> list[Mark]:
    """The marks to insert into the text, in order, without those already in a sentence."""
    marks = []
    quoted = [(start, end) for start, end in quoted_spans(text) if text[start] != ">"]
    for item in marked_sentences(text, findings):
        missing = [mark for mark in item.marks if mark not in item.sentence.text]
        if missing:
            # Before the final stop or the last bar of a table row.
            words = item.sentence.text
            is_row = words.startswith("|") and words.endswith("|")
            place = item.sentence.start + len(words[:-1].rstrip(" \t") if is_row else words.rstrip(_STOPS))
            after = next((end for start, end in quoted if start < place < end), place)
            marks.append(Mark(after, " ".join(missing)))
    return marks


def leave_out(text: str, marked: Sequence[MarkedSentence]) -> str:
    """The text without these sentences and the lines, paragraphs, tables and headings that they leave empty."""
    return without_spans(text, [(item.sentence.start, item.sentence.end) for item in marked])


def without_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The text without these spans and the blocks that they leave empty."""
    kept: list[str] = []
    below = 0  # the level of the next heading, 7 for text; a heading stays only if its level is lower
    for line in reversed(_TABLE.sub(_rows_of_table, "".join(_lines_without(text, spans))).splitlines()):
        heading = _HEADING.match(line)
        if heading and below <= len(heading[1]):
            continue
        if heading or line.strip():
            below = len(heading[1]) if heading else 7
        kept.append(line)
    text = "\n".join(reversed(kept))
    return re.sub(r"\n[ \t]*(?:\n[ \t]*)+\n", "\n\n", text).strip()


def _lines_without(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[str]:
    starts = [start for start, _ in spans]
    for match in _LINE.finditer(text):
        # Spans are sorted and disjoint, so only the last one that starts before the line may reach into it.
        near = range(max(0, bisect_right(starts, match.start()) - 1), bisect_left(starts, match.end()))
        cuts = [(max(spans[n][0], match.start()), min(spans[n][1], match.end())) for n in near]
        cuts = [(start, end) for start, end in cuts if start < end]
        if not cuts:
            yield match[0]
            continue
        if match[0].lstrip().startswith("|"):
            continue  # a table row is removed as a whole
        line = match.start()
        rest = replace_spans(match[0], ((start - line, end - line, "") for start, end in cuts))
        if not _BARE.fullmatch(rest):
            indent = match[0][: len(match[0]) - len(match[0].lstrip(" \t"))]
            kept = re.sub(r"(?<=\S)[ \t]{2,}", " ", rest.strip())
            yield f"{indent}{kept}" + ("\n" if rest.endswith("\n") else "")


def _rows_of_table(block: re.Match[str]) -> str:
    """The rows if they still form a table: a header, a rule below it, and at least one row."""
    rows = block[0].strip().splitlines()
    rule = next((place for place, row in enumerate(rows) if is_table_rule(row)), None)
    return block[0] if rule is None or (rule == 1 and len(rows) > 2) else ""
