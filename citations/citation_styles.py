"""Renders markers as citations: `[E3]` in state becomes `(smith2024quantum)` or another of five styles.

Consecutive sentences that rest on one paper show a single citation, at the end of the last of them, but a doubtful one
has its own. The passages that support it are still recorded next to the text, one record per sentence and passage in
reading order, so that every rendered sentence links to its evidence.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from ..documents import Evidence
from ..documents.marker_escaping import unescape
from ..documents.plain_text import is_table_rule
from ..roles.extractive.passage_details import has_details
from ..roles.protocols import DecidingSpan, Source, Verdict, VerdictLabel
from ..settings.config import CitationStyle
from ..text.sentences import replace_spans
from ..text.words import one_line
from .checks.fabricated_citations import NEEDED
from .checks.findings import Finding, Rule
from .checks.support_findings import DOUBTFUL, PairKey
from .markers import CitedSentence, citation_runs, marker_groups, normalise_markers, quoted_spans, sentences

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


_PANDOC_KEY = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_]|[:.#$%&+?<>~/-](?=[A-Za-z0-9_]))*")
_TITLE_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation of the rendered text: `chunk.text[start:end] == quote`, `sentence` as the reader sees it.

    `decided_by` is the first span in the chunk that the judge's verdict is based on, if any; `decided_by_spans` are all
    of them, in any chunk of the evidence. `number` is the paper's number in the numeric style.
    """

    key: str
    page: int | None
    section: str
    evidence_id: str
    chunk_id: str
    quote: str
    start: int
    end: int
    sentence: str
    verdict: VerdictLabel
    reason: str = ""
    decided_by: tuple[int, int] | None = None
    number: int | None = None
    decided_by_spans: tuple[DecidingSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedSentence:
    """A sentence at `text[start:end]` and its evidence; `covered` if a later sentence shows its citation."""

    start: int
    end: int
    ids: tuple[str, ...]
    covered: bool = False


@dataclass(frozen=True, slots=True)
class CitationPlace:
    """A group of citations at `text[start:end]` of the rendered text, and the evidence it cites.

    It stands for the `covers` characters before it: all sentences of a run. `instead` is the input for pandoc, if it
    differs from the words of the text.
    """

    start: int
    end: int
    ids: tuple[str, ...]
    instead: str = ""
    covers: int = 0


@dataclass(frozen=True, slots=True)
class _Move:
    """The shift of the rendered text from position `end` of the draft, after a marker or an inserted `mark`."""

    end: int
    shift: int
    mark: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """The section as the reader sees it; `keys` in order of first citation.

    `numbering` are the previously cited keys followed by these, so `numbering[n - 1]` is number n.
    """

    text: str
    keys: tuple[str, ...]
    citations: tuple[Citation, ...]
    sentences: tuple[RenderedSentence, ...]
    places: tuple[CitationPlace, ...] = ()
    moves: tuple[_Move, ...] = ()
    numbering: tuple[str, ...] = ()

    def map_position(self, position: int) -> int:
        """Map a position of the draft, outside its markers, to the rendered text."""
        return _map_position(self.moves, position)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Map a span of the draft to the rendered text, without a mark directly after it."""
        before = bisect_right(self.moves, end, key=attrgetter("end"))
        while before and self.moves[before - 1].end == end and self.moves[before - 1].mark:
            before -= 1
        return self.map_position(start), end + (self.moves[before - 1].shift if before else 0)

    def with_cited_keys(self, keys: Sequence[str]) -> Rendered:
        """The same text with these papers, cited by the user's own words, added."""
        return replace(
            self,
            keys=tuple(dict.fromkeys([*self.keys, *keys])),
            numbering=tuple(dict.fromkeys([*self.numbering, *keys])),
        )


def render(
    text: str,
    sources: Sequence[Source],
    style: CitationStyle,
    *,
    verdicts: Mapping[PairKey, Verdict] | None = None,
    marks: Sequence[Mark] = (),
    before: Sequence[str] = (),
    typed: Collection[str] = (),
) -> Rendered:
    """Render the draft in one of the five citation styles, with `marks` at their positions in the normalised draft.

    `before` are the keys that already have the first numbers, `typed` the sentences whose citations stay where the user
    typed them.

    A marker that names none of `sources` is rendered as `[citation needed]`: it must not reach the output even if a
    caller did not call `replace_invalid_citations`.
    """
    text = normalise_markers(text)
    evidence = {source.evidence.id: source.evidence for source in sources}
    groups = marker_groups(text)
    doubtful = {sentence for (sentence, _), verdict in (verdicts or {}).items() if verdict.label in DOUBTFUL}
    runs = citation_runs(text, {identifier: item.key for identifier, item in evidence.items()}, doubtful.union(typed))
    keys = tuple(dict.fromkeys(evidence[i].key for _, _, ids in groups for i in ids if i in evidence))
    numbering = tuple(dict.fromkeys([*before, *keys]))
    numbers = {key: number for number, key in enumerate(numbering, 1)}
    pieces: list[str] = []
    moves: list[_Move] = []
    places: list[CitationPlace] = []
    done = length = 0
    inserted = ((mark.position, mark.position, mark) for mark in marks)
    edits: list[tuple[int, int, tuple[str, ...] | Mark]] = [*groups, *inserted]
    ends = {run.group[0]: run for run in runs}
    hidden = {start for run in runs for start in run.hidden}
    for start, end, edit in sorted(edits, key=lambda edit: edit[:2]):
        before = text[done:start]
        if isinstance(edit, Mark):
            shown = f" {edit.words}"
        elif start in hidden:
            before, shown = before.rstrip(" "), ""
        else:
            run = ends.get(start)
            ids = run.ids if run else edit
            cited = [evidence[identifier] for identifier in ids if identifier in evidence]
            # A list names the location of each passage anyway.
            listed = {item.id: replace(item, page=None, section="") for item in cited if has_details(text, end)}
            shown = show_group(ids, evidence | listed, style, numbers)
            if cited:
                begin = length + len(before)
                covers = begin - _map_position(moves, run.start) if run else 0
                place = CitationPlace(begin, begin + len(shown), tuple(item.id for item in cited), covers=covers)
                places.append(place)
        pieces += [before, shown]
        length += len(before) + len(shown)
        moves.append(_Move(end, length - end, mark=isinstance(edit, Mark)))
        done = end
    rendered = unescape("".join([*pieces, text[done:]]))
    covered = {start for run in runs for start in run.covered}
    spans: list[RenderedSentence] = []
    records: list[Citation] = []
    for sentence in sentences(text):
        first, last = _map_position(moves, sentence.start), _map_position(moves, sentence.end)
        if first < last:  # a marker alone may be shown with the sentence before it
            spans.append(RenderedSentence(first, last, sentence.ids, sentence.start in covered))
        for identifier in sentence.ids:
            if found := evidence.get(identifier):
                verdict = (verdicts or {}).get((sentence.text, identifier), Verdict("unjudged"))
                records.append(make_citation(found, rendered[first:last], verdict, numbers[found.key]))
    return Rendered(rendered, keys, tuple(records), tuple(spans), tuple(places), tuple(moves), numbering)


def show_group(
    ids: Sequence[str], evidence: Mapping[str, Evidence], style: CitationStyle, numbers: Mapping[str, int]
) -> str:
    """Render a group of markers in a style; `numbers` are the papers'; unknown ids become `[citation needed]`."""
    by_key: dict[str, list[Evidence]] = {}  # each key is named once, with all its locations
    for identifier in ids:
        if item := evidence.get(identifier):
            by_key.setdefault(item.key, []).append(item)
    shown = _cite(by_key, style, numbers) if by_key else ""
    return shown if evidence.keys() >= set(ids) else f"{shown} {NEEDED}".strip()


def _map_position(moves: Sequence[_Move], position: int) -> int:
    before = bisect_right(moves, position, key=attrgetter("end"))
    return position + (moves[before - 1].shift if before else 0)


def make_citation(evidence: Evidence, sentence: str, verdict: Verdict, number: int) -> Citation:
    place = (evidence.key, evidence.page, evidence.section, evidence.id, evidence.chunk_id)
    words = (evidence.quote, evidence.start, evidence.end, sentence)
    decided = None if verdict.start is None or verdict.end is None else (verdict.start, verdict.end)
    return Citation(*place, *words, verdict.label, verdict.reason, decided, number, verdict.spans)


def _cite(by_key: Mapping[str, Sequence[Evidence]], style: CitationStyle, numbers: Mapping[str, int]) -> str:
    if style == "key":
        return f"({'; '.join(by_key)})"
    if style == "numeric":  # `[1, p. 4; 3, pp. 2, 7]`, or `[1, 3]` where no source has pages
        pages = {key: _pages(by_key[key], "p. ", "pp. ") for key in sorted(by_key, key=lambda key: numbers[key])}
        located = [f"{numbers[key]}, {page}" if page else str(numbers[key]) for key, page in pages.items()]
        return f"[{('; ' if any(pages.values()) else ', ').join(located)}]"
    if style == "latex":  # `\cite[p.~4]{a}`; adjacent keys without a page share one command
        commands: list[tuple[str, list[str]]] = []
        for key, items in by_key.items():
            page = _pages(items, "p.~", "pp.~")
            if page or not commands or commands[-1][0]:
                commands.append((page, [key]))
            else:
                commands[-1][1].append(key)
        return " ".join(rf"\cite{f'[{page}]' if page else ''}{{{','.join(keys)}}}" for page, keys in commands)
    named: list[str] = []
    for key, items in by_key.items():  # `@key, p. 4` or `key, page 4`; the section if the source has no pages
        quoted = (quoted_section(item.section) for item in items if item.page is None)
        titles = list(dict.fromkeys(filter(None, quoted)))
        if style == "pandoc":
            # pandoc treats "in section" as plain text; with "sec." it would number and pluralise the title.
            name, page, section = pandoc_key(key), _pages(items, "p. ", "pp. "), "in section "
        else:
            name, page = key, _pages(items, "page ", "pages ")
            section = "section " if len(titles) < 2 else "sections "
        place = page or (f"{section}{', '.join(titles)}" if titles else "")
        named.append(f"{name}, {place}" if place else name)
    return f"[{'; '.join(named)}]"


def pandoc_key(key: str) -> str:
    return f"@{key}" if _PANDOC_KEY.fullmatch(key) else f"@{{{key}}}"


def _pages(items: Sequence[Evidence], one: str, several: str) -> str:
    pages = sorted({item.page for item in items if item.page is not None})
    return f"{one if len(pages) == 1 else several}{', '.join(map(str, pages))}" if pages else ""


def quoted_section(section: str) -> str:
    """A section title for use inside a citation, in quotation marks; empty if there is none."""
    plain = shorten(re.sub(r"[;@|{}<>\"\u201c\u201d\\`*$^~\[\]]|(?<!\w)_|_(?!\w)", "", section), _TITLE_LENGTH)
    return f'"{plain}"' if plain else ""


def shorten(title: str, most: int) -> str:
    """A title on one line, cut between words after at most `most` characters."""
    line = one_line(title)
    return line if len(line) <= most else line[:most].rsplit(" ", 1)[0].rstrip(",:;-") + " …"
