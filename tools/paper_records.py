"""A paper's text as passages, its outline, and the figures that hold a passage."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..documents import Category, Chunk, Section, same_section
from ..documents.figures import FigureKind, PaperFigure
from ..plurals import counted
from ..stores.library import Library


class FigureOfPassage(TypedDict):
    """The figure or table that holds a passage."""

    number: int
    kind: FigureKind
    name: str


@dataclass(frozen=True, slots=True)
class Passage:
    """Neighbouring chunks of one section as one text, from `start` to `end` in the paper.

    `found` are the ids of the chunks that a search found; a passage without any is background. Anything other than text
    between two chunks of the section is replaced by an empty line.
    """

    text: str
    section: str
    category: Category
    page: int | None
    start: int
    end: int
    chunk_ids: tuple[str, ...]
    found: tuple[str, ...]


def merge_chunks(chunks: Iterable[Chunk], found: Collection[str] = ()) -> list[Passage]:
    """Passages of chunks of one paper, given in reading order; `found` are the ids that a search found."""
    runs: list[list[Chunk]] = []
    for chunk in chunks:
        last = runs[-1][-1] if runs else None
        # If chunks are short, this one may also overlap with the last but one.
        if last and same_section(last, chunk) and (chunk.index == last.index + 1 or chunk.start < last.end):
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
    passages: list[Passage] = []
    for run in runs:
        first = run[0]
        text, end = first.text, first.end
        for chunk in run[1:]:
            text += chunk.text[end - chunk.start :] if chunk.start <= end else "\n\n" + chunk.text
            end = max(end, chunk.end)
        ids = tuple(chunk.id for chunk in run)
        own = tuple(name for name in ids if name in found)
        passages.append(Passage(text, first.section, first.category, first.page, first.start, end, ids, own))
    return passages


@dataclass(frozen=True, slots=True)
class OutlinedSection:
    """A section with the first and last index of its own chunks and their first and last page, None if it has none."""

    section: Section
    chunks: tuple[int, int] | None
    pages: tuple[int, int] | None

    @property
    def chunk_count(self) -> int:
        """The number of the section's own chunks, not counting its subsections."""
        return self.chunks[1] - self.chunks[0] + 1 if self.chunks else 0


def outline(library: Library, key: str) -> list[OutlinedSection]:
    """The sections of a paper in reading order; raises `UnknownPaperError`. Blocks."""
    sections = library.sections(key)
    starts = [section.start for section in sections]
    held: dict[int, list[Chunk]] = {}
    for chunk in library.paper_chunks(key):
        # Of sections that start at the same offset, all but the last are empty.
        held.setdefault(bisect_right(starts, chunk.start) - 1, []).append(chunk)
    outlined: list[OutlinedSection] = []
    for place, section in enumerate(sections):
        indices = [chunk.index for chunk in held.get(place, ())]
        pages = [chunk.page for chunk in held.get(place, ()) if chunk.page is not None]
        ends = [(min(numbers), max(numbers)) if numbers else None for numbers in (indices, pages)]
        outlined.append(OutlinedSection(section, *ends))
    return outlined


def read_indexed_text(library: Library, key: str) -> list[Passage]:
    """The searchable text of a paper, in reading order and without repeated words; raises `UnknownPaperError`. Blocks.

    Sections that are not searched, such as reference lists, are not stored in the library and so not included.
    """
    return merge_chunks(library.paper_chunks(key))


def count_kinds(kinds: Sequence[str]) -> str:
    """ "3 figures and 1 table"; empty if there are none."""
    tables = kinds.count("table")
    counts = [(len(kinds) - tables, "figure"), (tables, "table")]
    return " and ".join(counted(count, name) for count, name in counts if count)


def find_figure(figures: Sequence[PaperFigure], chunk: Chunk, sentence: str) -> FigureOfPassage | None:
    """The figure or table that contains a passage, or that its shown sentence is about; None if there is none."""
    for figure in figures:
        if figure.span is None or not (chunk.start < figure.span[1] and figure.span[0] < chunk.end):
            continue
        start, end = figure.span
        shown = " ".join(chunk.text[max(0, start - chunk.start) : max(0, end - chunk.start)].split())
        if (start <= chunk.start and chunk.end <= end) or chunk.text.strip() in shown or sentence in shown:
            return {"number": figure.number, "kind": figure.kind, "name": figure.name}
    return None


def find_cited_figures(library: Library, evidence: Iterable[Mapping[str, Any]]) -> dict[str, PaperFigure]:
    """The figure that contains each piece of evidence, by evidence id; blocks.

    `evidence` are records with `id`, `key`, `chunk_id`, `start`, `end` and `quote`. Evidence from a paper that has
    changed since or was removed is left out.
    """
    found: dict[str, PaperFigure] = {}
    known = library.records()
    of_paper: dict[str, tuple[PaperFigure, ...]] = {}
    wanted = [record for record in evidence if record["key"] in known]
    for key in {record["key"] for record in wanted}:
        of_paper[key] = library.catalog.figures(key)
    wanted = [record for record in wanted if of_paper[record["key"]]]
    chunks = {chunk.id: chunk for chunk in library.chunks([record["chunk_id"] for record in wanted])}
    for record in wanted:
        chunk = chunks.get(record["chunk_id"])
        if chunk is None or chunk.text[record["start"] : record["end"]] != record["quote"]:
            continue
        start, end = chunk.start + record["start"], chunk.start + record["end"]
        held: list[tuple[int, int, PaperFigure]] = []
        for figure in of_paper[record["key"]]:
            caption = None if figure.start is None or figure.end is None else (figure.start, figure.end)
            spans = [span for span in (caption, figure.body) if span]
            shared = sum(max(0, min(end, last) - max(start, first)) for first, last in spans)
            held.append((shared, -figure.number, figure))
        most, _, figure = max(held, key=lambda item: item[:2])
        if 2 * most >= end - start > 0:  # its caption and rows hold at least half of the characters
            found[record["id"]] = figure
    return found
