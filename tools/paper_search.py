"""Finds papers by summary or by the words of their full text, and reads a paper's passages, outline and figures."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Final

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..documents import Category, Chunk, Paper, Section, same_section, split_chunk_id
from ..documents.figures import FigureKind, PaperFigure
from ..documents.publication_status import PublicationStatus
from ..errors import InputError
from ..models.embeddings.bundled_models import LocalEmbedding
from ..models.embeddings.protocol import Vector
from ..plurals import counted
from ..stores.library import Library
from ..stores.store_protocols import NearPaper, TextScope
from ..stores.text_analysis import analyze
from ..text.sentences import sentence_spans
from .scope import Scope

PAGE_SIZE: Final = 10
_LONGEST_QUERY: Final = 200  # terms
_MOST_REQUIRED: Final = 12  # terms of a query for which papers with all of them come first; each is looked up
_MOST_CHUNKS: Final = 5000  # chunks ranked by paper: about 50 ms, in a library of any size
_EARLIEST, _LATEST = 0, 9999
# The best cosine for 12 queries without an answer was at most 0.705 for passages and 0.63 for summaries in a library of
# 150 papers, 0.62 and 0.56 in a library of 10; for the 33 queries with an answer it was at least 0.65 and 0.55.
NEAR_PASSAGE: Final = 0.71
NEAR_SUMMARY: Final = 0.60
_NEAR_BY_WORDS: Final = 0.5  # share of the query's significant words
_MOST_READ: Final = 500  # summaries searched for the query's words
NO_PROSE: Final = ("|", "!", "[!", "#", "<", "$$")  # beginnings of tables, pictures, headings, tags and formulas


@dataclass(frozen=True, slots=True)
class PaperHit:
    """A paper with its score, its best matching chunk, and that chunk's matching sentence."""

    paper: Paper
    score: float
    chunk: Chunk
    sentence: str


@dataclass(frozen=True, slots=True)
class PaperPage:
    """One page of a search; `total` papers match, and `next_page` is None after the last page."""

    hits: tuple[PaperHit, ...]
    total: int
    next_page: int | None


def keys_with_words(library: Library, words: Sequence[str]) -> set[str]:
    """Return the keys of the papers whose text has all these words; blocks. Raises `FullTextError`."""
    having = [
        {split_chunk_id(identifier)[0] for identifier, _ in library.matching([term], _MOST_CHUNKS)}
        for term in dict.fromkeys(analyze(" ".join(words)))
    ]
    return set.intersection(*having) if having else set()


def search_papers(
    library: Library, query: str, min_year: int | None = None, max_year: int | None = None, page: int = 1
) -> PaperPage:
    """Find papers whose text contains words of the query, `PAGE_SIZE` per page; papers with all words come first.

    A paper is scored by its best chunk, and by the query's words in its title; in a large library only papers with one
    of the 5,000 best chunks count. A limit on the year excludes papers without a year. Blocks. Raises `InputError` for
    a page below 1 or years in the wrong order, and `FullTextError`.
    """
    if page < 1:
        raise InputError(f"There is no page {page}.", help="The first page is 1.")
    years = year_range(min_year, max_year)
    terms = list(dict.fromkeys(analyze(query)))[:_LONGEST_QUERY]
    matching = library.matching(terms, _MOST_CHUNKS, TextScope(years=years))
    rarity = library.fulltext.rarity(terms) if matching else {}
    best = {split_chunk_id(name)[0]: (name, score) for name, score in reversed(matching)}
    top = max((score for _, score in best.values()), default=1.0)
    papers = {paper.key: paper for paper in library.papers()}  # excludes papers that another process is changing
    weighed = {
        key: score / top + _share(library, papers[key].title, rarity)
        for key, (_, score) in best.items()
        if key in papers
    }
    whole = keys_with_words(library, [query]) if 1 < len(terms) <= _MOST_REQUIRED else set()
    ranked = sorted(weighed, key=lambda key: (key not in whole, -weighed[key], key))
    shown = ranked[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    chunks = {chunk.key: chunk for chunk in library.chunks([best[key][0] for key in shown])}
    hits = tuple(
        PaperHit(papers[key], weighed[key] / 2, chunks[key], matching_sentence(library, chunks[key].text, query))
        for key in shown
        if key in chunks
    )
    return PaperPage(hits, len(ranked), page + 1 if page * PAGE_SIZE < len(ranked) else None)


def year_range(first: int | None, last: int | None) -> tuple[int, int] | None:
    """Return both limits if at least one is given; raises `InputError` if they are in the wrong order."""
    if first is None and last is None:
        return None
    years = (_EARLIEST if first is None else first, _LATEST if last is None else last)
    if years[0] > years[1]:
        raise InputError(f"The years {years[0]} to {years[1]} are in the wrong order.", help="Swap the two years.")
    return years


def matching_sentence(library: Library, text: str, query: str, said: Collection[str] = ()) -> str:
    """Find the sentence that shares the most significant words with the query, else the first prose sentence.

    Sentences in `said` are skipped if there are others, since neighbouring chunks overlap.
    """
    rarity = library.fulltext.rarity(set(analyze(query)))
    sentences = [" ".join(text[start:end].split()) for start, end in sentence_spans(text)] or [" ".join(text.split())]
    sentences = [sentence for sentence in sentences if sentence not in said] or sentences
    # Ties go to the shorter, more specific sentence, then to the first.
    best = max(sentences, key=lambda sentence: (_share(library, sentence, rarity), -len(sentence)))
    if _share(library, best, rarity):
        return best
    return next((sentence for sentence in sentences if not sentence.startswith(NO_PROSE)), sentences[0])


def nearness_to(library: Library, query: str, least: float) -> Callable[[str, float], bool]:
    """Return a function that tells whether a text is near a query: by half of its significant words or by cosine.

    `least` is `NEAR_PASSAGE` or `NEAR_SUMMARY`, valid for the bundled model; with another model, all texts are near.
    """
    if library.embedding.name != LocalEmbedding.name:
        return lambda *_: True
    rarity = library.fulltext.rarity(set(analyze(query)))
    return lambda text, cosine: cosine >= least or _share(library, text, rarity) >= _NEAR_BY_WORDS


def papers_near_to(library: Library, query: str, vector: Vector, years: tuple[int, int] | None) -> list[NearPaper]:
    """Find the papers whose summary or note is near a query, nearest first; blocks."""
    scope, is_near = Scope(years=years), nearness_to(library, query, NEAR_SUMMARY)
    found = [item for item in library.nearest_papers(vector, len(library.papers())) if scope.holds(item.paper)]
    texts = [f"{item.paper.title}\n{item.summary}\n{item.note}" for item in found[:_MOST_READ]]
    return [item for item, text in zip(found, chain(texts, repeat("")), strict=False) if is_near(text, item.score)]


def _share(library: Library, text: str, rarity: Mapping[str, float]) -> float:
    """Return the share (0-1) of a query's significant words that a text contains."""
    whole = sum(rarity.values())
    present = set(analyze(text))
    return sum(weight for term, weight in rarity.items() if term in present) / whole if whole else 0.0


def publication_statuses(library: Library, papers: Sequence[Paper]) -> dict[str, PublicationStatus]:
    """Return the publication status of each paper by key: retracted, corrected, or nothing known; blocks."""
    known = library.metadata.statuses(papers)
    return {paper.key: known.get(paper.key, PublicationStatus()) for paper in papers}


class FigureOfPassage(TypedDict):
    """The figure or table that holds a passage."""

    number: int
    kind: FigureKind
    name: str


@dataclass(frozen=True, slots=True)
class Passage:
    """Neighbouring chunks of a section as one text, from `start` to `end` in the paper.

    Gaps between chunks are replaced by an empty line.
    """

    text: str
    section: str
    category: Category
    page: int | None
    start: int
    end: int
    chunk_ids: tuple[str, ...]


def merge_chunks(chunks: Iterable[Chunk]) -> list[Passage]:
    """Merge chunks of one paper, given in reading order, into passages."""
    runs: list[list[Chunk]] = []
    for chunk in chunks:
        last = runs[-1][-1] if runs else None
        # A chunk may also overlap with the last but one, if chunks are short.
        if last and same_section(last, chunk) and (chunk.index == last.index + 1 or chunk.start < last.end):
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
    passages: list[Passage] = []
    for run in runs:
        first = run[0]
        text, end = first.text, first.end
        for chunk in run[1:]:
            text += chunk.text[end - chunk.start :] if chunk.start <= end else f"\n\n{chunk.text}"
            end = max(end, chunk.end)
        ids = tuple(chunk.id for chunk in run)
        passages.append(Passage(text, first.section, first.category, first.page, first.start, end, ids))
    return passages


@dataclass(frozen=True, slots=True)
class OutlinedSection:
    """A section with the index range of its own chunks and their page range; None if it has no chunks or pages."""

    section: Section
    chunks: tuple[int, int] | None
    pages: tuple[int, int] | None

    @property
    def chunk_count(self) -> int:
        """The number of the section's chunks, without its subsections."""
        return self.chunks[1] - self.chunks[0] + 1 if self.chunks else 0


def outline(library: Library, key: str) -> list[OutlinedSection]:
    """Return the sections of a paper in reading order; raises `UnknownPaperError`. Blocks."""
    sections = library.sections(key)
    starts = [section.start for section in sections]
    held: dict[int, list[Chunk]] = {}
    for chunk in library.paper_chunks(key):
        # If sections start at the same offset, all but the last are empty.
        held.setdefault(bisect_right(starts, chunk.start) - 1, []).append(chunk)
    outlined: list[OutlinedSection] = []
    for place, section in enumerate(sections):
        own = held.get(place, ())
        numbers = ([chunk.index for chunk in own], [chunk.page for chunk in own if chunk.page is not None])
        outlined.append(OutlinedSection(section, *((min(each), max(each)) if each else None for each in numbers)))
    return outlined


def read_indexed_text(library: Library, key: str) -> list[Passage]:
    """Return the searchable text of a paper, in reading order and without overlaps; raises `UnknownPaperError`. Blocks.

    Sections that are not searched, such as reference lists, are not stored in the library and so not included.
    """
    return merge_chunks(library.paper_chunks(key))


def count_kinds(kinds: Sequence[str]) -> str:
    """Format counts as "3 figures and 1 table"; empty if there are none."""
    tables = kinds.count("table")
    counts = [(len(kinds) - tables, "figure"), (tables, "table")]
    return " and ".join(counted(count, name) for count, name in counts if count)


def find_figure(figures: Sequence[PaperFigure], chunk: Chunk, sentence: str) -> FigureOfPassage | None:
    """Find the figure or table that contains a passage or its shown sentence; None if there is none."""
    for figure in figures:
        if figure.span is None or not (chunk.start < figure.span[1] and figure.span[0] < chunk.end):
            continue
        start, end = figure.span
        shown = " ".join(chunk.text[max(0, start - chunk.start) : max(0, end - chunk.start)].split())
        if (start <= chunk.start and chunk.end <= end) or chunk.text.strip() in shown or sentence in shown:
            return {"number": figure.number, "kind": figure.kind, "name": figure.name}
    return None


def find_cited_figures(library: Library, evidence: Iterable[Mapping[str, Any]]) -> dict[str, PaperFigure]:
    """Find the figure that contains each piece of evidence, by evidence id; blocks.

    `evidence` are records with `id`, `key`, `chunk_id`, `start`, `end` and `quote`. Evidence from changed or removed
    papers is left out.
    """
    found: dict[str, PaperFigure] = {}
    known = library.records()
    wanted = [record for record in evidence if record["key"] in known]
    of_paper = {key: library.catalog.figures(key) for key in {record["key"] for record in wanted}}
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
        if 2 * most >= end - start > 0:  # the caption and rows contain at least half of the characters
            found[record["id"]] = figure
    return found
