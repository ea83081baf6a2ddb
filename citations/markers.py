"""Normalises evidence markers (`[E3]`) in a draft, and splits it into sentences with their markers.

Writers place markers in many forms: `[E3, E5]`, `(E3)`, `[e3]`, `【E3】`, after the full stop. State holds a single
form, `[E3][E5]` inside the sentence it supports; everything downstream reads only that form.

A quotation repeats a passage verbatim if only the typography differs: white space, emphasis, escapes, the form of
marks and dashes, an ellipsis for an omission, and the reference numbers and keys that `format_quote` omits.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ..documents.marker_escaping import unescape
from ..documents.plain_text import REFERENCES
from ..text.sentences import replace_spans, sentence_spans
from ..text.words import read_rules
from .checks.unicode_folding import fold

MARKER = re.compile(r"\[(E[1-9]\d{0,5})\]")
MARKER_LIST = re.compile(rf"{MARKER.pattern}(?:(?:,? and |[,;] ?)?{MARKER.pattern})*")
_GROUP = re.compile(r"(?:\[E[1-9]\d{0,5}\])+")

_FORMS: Final = {name: re.compile(rule) for name, rule in read_rules(__file__, "citation_patterns")["markers"].items()}
_LONGEST_RANGE = 12
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence, `draft[start:end] == text`, and the evidence it cites, in order, without duplicates."""

    text: str
    start: int
    end: int
    ids: tuple[str, ...]


def normalise_markers(text: str) -> str:
    """Rewrite every marker as `[E3]`, side by side, inside its sentence. Idempotent."""
    text = _SURROGATE.sub("\ufffd", text)  # a lone surrogate from a model's JSON, which no file could store
    text = _FORMS["closed_inside"].sub(r"[\1]\2", text)
    for _ in range(8):  # nested brackets settle in two or three rounds
        view = fold(text)
        edits: list[tuple[int, int, str]] = []
        for match in _FORMS["written"].finditer(view.text):
            start, end = view.span(match.start(), match.end())
            ids: list[int] = []
            for item in _FORMS["item"].finditer(_FORMS["located"].sub("", match[0].partition("(#")[0])):
                number = int(item["number"])
                if item["to"] and ids and 0 < number - ids[-1] <= _LONGEST_RANGE:  # `E1-E3` names three
                    ids.extend(range(ids[-1] + 1, number))
                ids.append(number)
            unsure = _FORMS["divided_number"].search(text, start, end)  # `E3*5` is not E35
            if ids and not unsure and not (edits and start < edits[-1][1]) and not MARKER.fullmatch(text[start:end]):
                edits.append((start, end, "".join(f"[E{number}]" for number in dict.fromkeys(ids))))
        normal = _move_before_stops(_fix_spacing(_FORMS["dressed"].sub(r"\2", replace_spans(text, edits))))
        if normal == text:
            break
        text = normal
    return text


def marker_ids(text: str) -> tuple[str, ...]:
    """The ids of all markers of a normalised draft, in order of first appearance, without duplicates."""
    return tuple(dict.fromkeys(MARKER.findall(text)))


@lru_cache(maxsize=8)  # every check splits the same draft
def sentences(text: str) -> Sequence[CitedSentence]:
    """All sentences of a normalised draft; a full stop inside a quotation does not end a sentence."""
    joined: list[tuple[int, int]] = []
    quoted = SpanSet(quotation_spans(text))
    for start, end in sentence_spans(text):
        if joined and joined[-1][1] < start and quoted.holds(joined[-1][1]):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return tuple(CitedSentence(text[start:end], start, end, marker_ids(text[start:end])) for start, end in joined)


def sentence_at(text: str, position: int) -> CitedSentence | None:
    """The last sentence of a normalised draft that begins at or before a position."""
    placed = sentences(text)
    index = bisect_right(placed, position, key=lambda sentence: sentence.start) - 1
    return placed[index] if index >= 0 else None


def quotation_spans(text: str) -> list[tuple[int, int]]:
    """Spans of the quotations within a paragraph, with their marks; unclosed marks are ignored."""
    spans: list[tuple[int, int]] = []
    start = 0
    for blank in [*_FORMS["blank_line"].finditer(text), None]:
        end = blank.start() if blank else len(text)
        spans += [
            match.span()
            for pattern in (_FORMS["pairs"], _FORMS["straight"])
            for match in pattern.finditer(text, start, end)
        ]
        start = blank.end() if blank else end
    return spans


def marker_groups(text: str) -> list[tuple[int, int, tuple[str, ...]]]:
    """Groups of adjacent markers: start, end, and the ids without duplicates."""
    return [(match.start(), match.end(), marker_ids(match[0])) for match in _GROUP.finditer(text)]


@dataclass(frozen=True, slots=True)
class CitationRun:
    """Consecutive sentences of a draft that rest on the same papers, cited once by the `group` at the end of the run.

    `ids` are the evidence of all of them; `hidden` are the starts of the groups that are not shown, `covered` those of
    the sentences before the last, and `start` that of the first.
    """

    start: int
    group: tuple[int, int]
    ids: tuple[str, ...]
    hidden: tuple[int, ...]
    covered: tuple[int, ...]


def citation_runs(text: str, keys: Mapping[str, str], apart: Collection[str] = ()) -> list[CitationRun]:
    """The runs of a normalised draft, of two groups or more; `keys` are the papers of the known evidence.

    A run stays within a line. A sentence belongs to it if a group of markers ends it, with all that it cites in that
    group, or of a single paper, and if it is not among the sentences `apart`.
    """
    groups = marker_groups(text)
    starts = [start for start, _, _ in groups]
    runs: list[CitationRun] = []
    open_run: list[CitedSentence] = []
    papers: frozenset[str] | None = None

    def close() -> None:
        places = [groups[n] for item in open_run for n in within(starts, item.start, item.end)]
        if len(places) > 1:
            start, end, _ = places[-1]
            ids = marker_ids("".join(item.text for item in open_run))
            hidden = tuple(start for start, _, _ in places[:-1])
            runs.append(
                CitationRun(open_run[0].start, (start, end), ids, hidden, tuple(item.start for item in open_run[:-1]))
            )
        open_run.clear()

    for sentence in sentences(text):
        rests = None if sentence.text in apart else papers_at_end(sentence, keys)
        if open_run and (rests != papers or "\n" in text[open_run[-1].end : sentence.start]):
            close()
        papers = rests
        if rests is not None:
            open_run.append(sentence)
    close()
    return runs


def papers_at_end(sentence: CitedSentence, keys: Mapping[str, str]) -> frozenset[str] | None:
    """The papers that a sentence of one line cites at its end; None if it also cites others, or unknown evidence."""
    groups = marker_groups(sentence.text)
    if not groups or "\n" in sentence.text or any(map(str.isalnum, sentence.text[groups[-1][1] :])):
        return None
    if not all(identifier in keys for identifier in sentence.ids):
        return None
    if sentence.text[: groups[-1][0]].rstrip().endswith("."):
        return None  # without its citation "by Thomas et al. [E3]." would have two full stops
    papers = frozenset(keys[identifier] for identifier in sentence.ids)
    return papers if len(papers) == 1 or len(groups) == 1 else None


def _fix_spacing(text: str) -> str:

    def space(match: re.Match[str]) -> str:
        ids = "".join(f"[{identifier}]" for identifier in marker_ids(match[1]))
        before = text[match.start() - 1 : match.start()]
        glued = not before or before == "\n" or (before in "([{\"'\u201c" and match[0] == match[1])
        return ids if glued else f" {ids}"

    return _FORMS["spaced"].sub(space, text)


def _move_before_stops(text: str) -> str:
    """Move markers after a full stop to before it, unless they begin the next sentence."""

    def move(match: re.Match[str]) -> str:
        stop, close, group, again, rest = match.group("stop", "close", "group", "again", "rest")
        if stop == "." and _FORMS["abbreviated"].search(text, max(0, match.start() - 8), match.start()):
            ends = not again and (not rest.strip() or (rest[0].isspace() and rest.strip()[0].isupper()))
            return f"{stop}{close} {group}{'.' if ends else again}"
        if stop == "\u2026" and _FORMS["closes"].search(close):
            return f"{stop}{close} {group}{again or '.'}"  # an ellipsis inside a quotation
        if not again and rest.strip() and not rest[0].isspace():
            return match[0]  # "1.[E3]x": not the end of a sentence
        if not again and rest.strip()[:1].islower():
            return match[0]  # "... end. [E3] shows that": the marker is the subject
        return f"{close} {group}{stop}"

    return _FORMS["behind_stop"].sub(move, text)


_LONGEST_LINE: Final = 10_000  # characters; a heading or list item is not looked for further back


class SpanSet:
    """The union of spans `(start, end)`; touching spans are merged."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def meets(self, start: int, end: int) -> bool:
        """Whether any character of `start:end` lies in a span."""
        index = bisect_right(self._ends, start)
        return index < len(self._starts) and self._starts[index] < end

    def holds(self, position: int) -> bool:
        """Whether the character at a position lies in a span."""
        return self.meets(position, position + 1)


def within(starts: list[int], start: int, end: int) -> range:
    """The indices of the sorted `starts` that lie in `start:end`."""
    return range(bisect_left(starts, start), bisect_left(starts, end))


def line_start(text: str, position: int) -> int:
    """The start of the line that contains a position; the position itself if that is very far before it."""
    first = max(0, position - _LONGEST_LINE)
    before = text.rfind("\n", first, position)
    return before + 1 if before >= 0 else position if first else 0


_FEWEST_WORDS: Final = 5  # of a quotation; fewer may be a name, or a citation alone
_EDGES: Final = ".,;:!?-()[]"


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Spans of quotations including their marks, and of quoted lines (`> ...`); unclosed marks are ignored."""
    return sorted([*quotation_spans(text), *(match.span() for match in _FORMS["block"].finditer(text))])


def verbatim_spans(text: str, passages: Iterable[str]) -> list[tuple[int, int]]:
    """Spans of the quotations of at least five words that a passage contains verbatim."""
    quoted = [(start, end) for start, end in quoted_spans(text) if is_quotation(text[start:end])]
    said = list(passages) if quoted else []
    return [span for span in quoted if any(is_verbatim(text[slice(*span)], passage) for passage in said)]


def is_quotation(words: str) -> bool:
    """Whether quoted words are long enough to be a quotation rather than a name or term."""
    return len(_FORMS["word"].findall(MARKER.sub(" ", words))) >= _FEWEST_WORDS


def is_verbatim(quotation: str, passage: str) -> bool:
    """Whether the parts of a quotation, separated by ellipses, occur in the passage in this order."""
    parts = _parts(quotation)
    return bool(parts) and any(_in_order(parts, said) for said in _wordings(passage))


def _in_order(parts: Sequence[str], said: str) -> bool:
    """Whether the parts occur in this order, each beginning and ending with whole words and numbers."""
    place = 0
    for part in parts:
        while (at := said.find(part, place)) >= 0 and (_cuts_number(said, at) or _cuts_number(said, at + len(part))):
            place = at + 1
        if at < 0:
            return False
        place = at + len(part)
    return True


def _cuts_number(said: str, at: int) -> bool:
    before, after = said[max(0, at - 2) : at], said[at : at + 1]
    return after.isdigit() and (before[-1:].isdigit() or (before[-1:] in (".", ",") and before[:1].isdigit()))


@lru_cache(maxsize=64)
def _parts(quotation: str) -> tuple[str, ...]:
    parts = (_bare(part).strip(_EDGES) for part in _FORMS["omitted"].split(MARKER.sub(" ", unescape(quotation))))
    return tuple(part for part in parts if part)


@lru_cache(maxsize=1024)
def _wordings(passage: str) -> tuple[str, str]:
    """The passage unchanged, and without its reference numbers and keys."""
    return _bare(passage), _bare(REFERENCES.sub("", passage))


def _bare(words: str) -> str:
    return _FORMS["set"].sub("", fold(words).text).casefold()
