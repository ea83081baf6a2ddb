"""A user's text as read for checking: prose whose every character leads back to its place in the file.

Readers of the formats write prose in markdown: headings begin with `#`, citations by key are `[@{key}]` or `@{key}`,
and whatever else is typed, such as `[12]` or `(Smith 2020)`, stays as it is. The file itself is never changed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

from ..citations.cited_works import CitationMark, CitedWork, find_marks
from ..documents import Paper
from ..documents.marker_escaping import escape_markers, unescape
from ..documents.paper_names import in_text_name
from ..documents.plain_text import plain_text
from ..text.sentences import sentence_spans
from ..text.words import close_gaps, read_rules
from .claim_records import PlaceRecord

TextFormat = Literal["tex", "md", "docx", "typ", "org", "pdf"]
# What text can point to by number or label.
TargetKind = Literal["figure", "table", "section", "equation", "label"]

_RULES: Final = {name: re.compile(rule) for name, rule in read_rules(__file__, "sentence_rules")["manuscript"].items()}
LIST_HEADING, CAPTION, CROSS_REFERENCE = (_RULES[name] for name in ("list_heading", "caption", "cross_reference"))
_LONGEST_SENTENCE: Final = 4_000  # characters


@dataclass(frozen=True, slots=True)
class Segment:
    """`text[start:]` up to the next segment comes from `source:source_end` of a unit.

    A unit is a file (by its index), a paragraph of a Word document, or a page. In a `linear` segment each character has
    its own position.
    """

    start: int
    unit: int
    source: int
    source_end: int
    linear: bool


@dataclass(frozen=True, slots=True)
class Pointer:
    """A reference to a figure, table, section, equation or label at `start:end` of the text."""

    kind: TargetKind
    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ListedReference:
    """An entry of the reference list in the text itself; `label` is its number or key, if it has one."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class ManuscriptSentence:
    """A sentence of the prose, `text[start:end]`: its citations, and what its paragraph says before it.

    `shown` is the sentence without markup, with its citations as a reader may write them.
    """

    position: int
    start: int
    end: int
    section: str
    shown: str
    marks: tuple[CitationMark, ...]
    before: str


@dataclass
class Manuscript:
    """A text to check. A reader adds its prose with the places that it comes from, and whatever else it finds.

    `files` are the names of its files and `sources` their contents (text formats only). `bibliographies` are the `.bib`
    files that it names, `listed` the entries of its own list, `papers` entries that came with citations (Word fields).
    `targets` are the names of what it can point to, by kind: first the labels, and the figures and tables without a
    written number, once finished also the numbers. `notices` say in one line each what was not read.
    """

    format: TextFormat
    files: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    text: str = ""
    segments: list[Segment] = field(default_factory=list)
    bibliographies: list[str] = field(default_factory=list)
    listed: list[ListedReference] = field(default_factory=list)
    papers: dict[str, Paper] = field(default_factory=dict)
    cited_silently: list[str] = field(default_factory=list)
    pointers: list[Pointer] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    uncaptioned: dict[str, int] = field(default_factory=lambda: {"figure": 0, "table": 0})
    targets: dict[str, list[str]] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    length: int = 0

    def finish(self) -> Manuscript:
        self.text, self.pieces = "".join(self.pieces), []
        self.pointers += mentions(self.text)
        self.targets = numbered_targets(self.text, self.uncaptioned) | {"label": self.labels}
        return self

    def add(self, text: str, unit: int, start: int, end: int) -> None:
        """Append text that comes from `start:end` of a unit; linear if it is as long."""
        if not text:
            return
        linear = len(text) == end - start
        last = self.segments[-1] if self.segments else None
        if last and linear and last.linear and last.unit == unit and last.source_end == start:
            self.segments[-1] = replace(last, source_end=end)
        else:
            self.segments.append(Segment(self.length, unit, start, end, linear))
        self.pieces.append(text)
        self.length += len(text)

    def space(self, unit: int, at: int, blank: str = " ") -> None:
        """Append one blank, unless there is one."""
        if self.pieces and not (self.pieces[-1].endswith(blank) or (blank == " " and self.pieces[-1][-1].isspace())):
            self.add(blank, unit, at, at)

    def paragraph(self, unit: int, at: int) -> None:
        self.space(unit, at, "\n\n")

    def point(self, kind: TargetKind, name: str, shown: str, unit: int, start: int, end: int) -> None:
        """Append a reference to a figure or the like."""
        begin = self.length
        self.add(shown, unit, start, end)
        self.pointers.append(Pointer(kind, name, begin, self.length))

    def place(self, start: int, end: int) -> PlaceRecord:
        """Where `text[start:end]` is."""
        unit, first = self._source(start, at_end=False)
        last_unit, last = self._source(max(start, end - 1), at_end=True)
        last = max(first, last if last_unit == unit else first)
        of_files = self.format not in ("pdf", "docx")
        line, column = self._line(unit, first) if of_files else (None, None)
        end_line, end_column = self._line(unit, last) if of_files else (None, None)
        paged = self.format == "pdf"
        return {
            "file": self.files[unit if of_files else 0],
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
            "paragraph": unit if self.format == "docx" else None,
            "page": unit if paged else None,
            "start": None if paged else first,
            "end": None if paged else last,
        }

    def _line(self, unit: int, position: int) -> tuple[int, int]:
        line = bisect_right(self._lines[unit], position)
        return line, position - self._lines[unit][line - 1] + 1

    def sentences(self, papers: Sequence[Paper] = ()) -> list[ManuscriptSentence]:
        """The sentences of the prose, without headings; `papers` are the known entries, whose keys may be cited."""
        names = {paper.key: paper for paper in papers}
        marks = _with_broken(self.text, find_marks(self.text, names))
        headings = {match.start(): match["title"].strip() for match in _RULES["heading"].finditer(self.text)}
        found: list[ManuscriptSentence] = []
        section, place, last = "", 0, 0
        for start, end in _with_quotes(self.text, sentence_spans(self.text)):
            line = self.text.rfind("\n", 0, start) + 1
            if line in headings:
                section, last = headings[line], end
                continue
            while place < len(marks) and marks[place].end <= start:
                place += 1
            here = tuple(mark for mark in marks[place:] if mark.start < end)
            written = [written_citation(self.text, mark, names) for mark in here]
            shown = unescape(self._render(start, end, here, written))
            if not _RULES["letter"].search(shown):
                continue
            joined = bool(found) and "\n\n" not in self.text[last:start]
            before = found[-1].shown if joined else section
            found.append(ManuscriptSentence(len(found), start, end, section, shown, here, before))
            last = end
        return found

    def with_markers(self, sentence: ManuscriptSentence, markers: Sequence[str]) -> str:
        """The sentence without markup, with `markers` in place of its citations, in order."""
        held = [*markers, *[""] * (len(sentence.marks) - len(markers))]
        return self._render(sentence.start, sentence.end, sentence.marks, [f" {one} " if one else "" for one in held])

    def _render(self, start: int, end: int, marks: Sequence[CitationMark], written: Sequence[str]) -> str:
        pieces: list[str] = []
        done = start
        for number, mark in enumerate(marks):
            pieces += [self.text[done : max(done, mark.start)], f"\ue010{number}\ue011"]
            done = max(done, mark.end)
        plain = plain_text(escape_markers("".join([*pieces, self.text[done:end]]))[:_LONGEST_SENTENCE])
        return close_gaps(_RULES["held"].sub(lambda held: written[int(held[1])], plain))

    def _source(self, position: int, *, at_end: bool) -> tuple[int, int]:
        """The unit and the position in it of a character; with `at_end`, the position after it."""
        index = max(0, bisect_right(self.segments, position, key=lambda segment: segment.start) - 1)
        segment = self.segments[index]
        if segment.linear:
            return segment.unit, min(segment.source + position - segment.start + at_end, segment.source_end)
        return segment.unit, segment.source_end if at_end else segment.source

    @cached_property
    def _lines(self) -> list[list[int]]:
        return [[0, *(match.end() for match in re.finditer("\n", source))] for source in self.sources]


def _with_quotes(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The spans of sentences, each with the quotation mark that opens it and was left at the end of the last one."""
    moved = 0
    for start, end in spans:
        opens = text[end - 1] in '"\u201c(' and text[end - 2].isspace() and not text[end : end + 1].isspace()
        yield start - moved, len(text[: end - 1].rstrip()) if opens else end
        moved = int(opens)


def _with_broken(text: str, marks: Sequence[CitationMark]) -> list[CitationMark]:
    """The citations, with broken ones ("(smith2020?)", "[?]") and those that name no work; "?" is a broken key."""
    found = {mark.start: mark for mark in marks}
    for match in _RULES["broken"].finditer(text):
        keys = [part.strip(" *") for part in re.split("[;,]", match[1])]
        if all(map(_RULES["broken_key"].fullmatch, keys)):
            works = tuple(CitedWork(key.strip("@?") or "?") for key in keys)
            found[match.start()] = CitationMark("key", *match.span(), works)
    for match in _RULES["empty"].finditer(text):
        mark = found.get(match.start()) or CitationMark("key", *match.span(), ())
        found[match.start()] = replace(mark, works=(*mark.works, CitedWork()))
    return [found[start] for start in sorted(found)]


def bracket_pairs(brackets: re.Pattern[str], text: str, start: int = 0) -> dict[int, int]:
    """Map each opening bracket to its closing bracket, among those that a pattern finds; ignores its other matches."""
    pairs = {")": "(", "]": "[", "}": "{"}
    found: dict[int, int] = {}
    opened: list[tuple[str, int]] = []
    for match in brackets.finditer(text, start):
        if match[0] in pairs.values():
            opened.append((match[0], match.start()))
        elif match[0] in pairs and opened and opened[-1][0] == pairs[match[0]]:
            found[opened.pop()[1]] = match.start()
    return found


def numbered_targets(text: str, counted: Mapping[str, int]) -> dict[str, list[str]]:
    """The numbers of the figures, tables and sections of a text; `counted` are figures and tables without a number."""
    targets: dict[str, list[str]] = {"figure": [], "table": []}
    for caption in CAPTION.finditer(text):
        targets["figure" if caption["kind"][0] in "fF" else "table"].append(caption["number"])
    for kind, count in counted.items():
        targets[kind] += map(str, range(1, count + 1))
    titles = [(len(match[1]), match["title"]) for match in _RULES["heading"].finditer(text)]
    written = [found[1] for _, title in titles if (found := _RULES["section_number"].match(title))]
    # Without written numbers they are counted, with and without a lone title above them.
    tops = sorted({level for level, _ in titles})[:2]
    return targets | {"section": written or [number for top in tops for number in _count_sections(titles, top)]}


def _count_sections(titles: Sequence[tuple[int, str]], top: int) -> Iterator[str]:
    numbers: list[int] = []
    for level, _ in titles:
        if level >= top:
            numbers = [*numbers, *[0] * (level - top + 1)][: level - top + 1]
            numbers[-1] += 1
            yield ".".join(map(str, numbers))


def mentions(text: str) -> Iterator[Pointer]:
    """Find what a text points to by number or label, outside captions."""
    kinds: dict[str, TargetKind] = {"f": "figure", "t": "table", "s": "section"}
    captions = {caption.start("number") for caption in CAPTION.finditer(text)}
    for match in _RULES["mention"].finditer(text):
        if match.start("number") not in captions:
            yield Pointer(kinds[match["kind"][0].lower()], match["number"], *match.span())
    for match in CROSS_REFERENCE.finditer(text):
        yield Pointer("label", match[1], *match.span())


def written_citation(text: str, mark: CitationMark, papers: Mapping[str, Paper]) -> str:
    """Write a citation as a reader may do: keys in brackets, or names if the citation is part of the sentence."""
    if mark.form != "pandoc":
        return text[mark.start : mark.end]
    if not mark.narrative:
        return f"[{'; '.join(work.shown for work in mark.works)}]"
    cited = {work.key: papers.get(work.key) for work in mark.works}
    known = {key: paper for key, paper in cited.items() if paper and (paper.authors or paper.family_names)}
    named = {key: f"{in_text_name(paper)} ({paper.year})".replace(" (None)", "") for key, paper in known.items()}
    return " and ".join(named.get(work.key, work.key) for work in mark.works)
