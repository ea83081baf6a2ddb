"""Searches a library for passages and papers, and returns neighbouring passages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack, cast

from ..documents import Paper
from ..errors import InputError
from ..graph.session import Session
from ..models.embeddings.protocol import Vector
from ..settings.config import RetrievalMode
from ..stores.library import Library
from ..stores.store_protocols import FullTextError
from ..stores.text_analysis import analyze
from ..tools.paper_search import (
    NEAR_PASSAGE,
    PAGE_SIZE,
    find_figure,
    matching_sentence,
    nearness_to,
    papers_near_to,
    publication_statuses,
    search_papers,
    year_range,
)
from ..tools.retrieval import Hit, Retrieval, retrieve
from ..tools.scope import CategoryName, Labels, Scope, as_list, as_years, require_words
from .arguments import ArgumentError, one_or_more, require_choice, require_positive
from .blocking import blocking, threaded

if TYPE_CHECKING:
    from .results import FoundPaper, FoundPapers, FoundPassage, PassageWindow

_WORD: Final = re.compile(r"[^\W_]+")


async def asearch(
    session: Session,
    query: str,
    k: int = 10,
    mode: RetrievalMode = "hybrid",
    papers: Sequence[str] | str | None = None,
    categories: Sequence[str] | str | None = None,
    years: tuple[int, int] | None = None,
    venue: str = "",
    rerank: float = 0.0,
    **labels: Unpack[Labels],
) -> list[FoundPassage]:
    """Return the `k` best passages for a query, as the JSON of `search --json`.

    Args:
        query: what to look for.
        k: how many passages.
        mode: "dense" (by vectors), "bm25" (by words), or "hybrid" (both).
        papers: keys to search within.
        categories: kinds of section, such as "method".
        years: first and last year of publication, both included.
        venue: part of the journal's or book's name, ignoring case.
        rerank: weight (0-1) of the bundled cross-encoder in the ranking; 0 disables it.
        labels: the papers' `kind` (BibTeX type), `tag` or `collection`.

    Raises `InputError` for a query without words, an unknown key, category or venue, or without a full-text index.
    """
    require_words(query)
    require_positive("k", k)
    require_choice("mode", mode, RetrievalMode)
    if years is not None:
        if not (isinstance(years, Sequence) and len(years) == 2 and all(isinstance(year, int) for year in years)):
            raise ArgumentError(f"years: expected the first and the last year, as in (2018, 2020), got {years!r:.60}.")
        years = year_range(*years)
    scope = Scope.within(session.library, one_or_more(papers), one_or_more(categories), years, venue, **labels)
    hits = await retrieve(session.library, query, k, scope, Retrieval(mode, rerank=rerank))
    return await asyncio.to_thread(passage_records, session.library, query, hits)


def passage_records(library: Library, query: str, hits: Sequence[Hit]) -> list[FoundPassage]:
    """Convert passages to records, each showing a sentence that no earlier one shows; blocks."""
    if not hits:
        return []  # an empty library has no full-text index
    said: dict[str, set[str]] = {}
    sentences: list[str] = []
    statuses = publication_statuses(library, [hit.paper for hit in hits])
    for hit in hits:
        chunk = hit.chunk
        sentences.append(matching_sentence(library, chunk.text, query, said.get(chunk.key, ())))
        said.setdefault(chunk.key, set()).add(sentences[-1])
    is_near = nearness_to(library, query, NEAR_PASSAGE)
    figures = {key: library.catalog.figures(key) for key in said}
    return [
        {
            "chunk_id": hit.chunk.id,
            "key": hit.paper.key,
            "title": hit.paper.title,
            "year": hit.paper.year,
            "page": hit.chunk.page,
            "ocr": hit.chunk.page in hit.paper.ocr_pages,
            "section": hit.chunk.section,
            "category": hit.chunk.category.name.lower(),
            "score": round(hit.score, 4),
            "vector_score": round(hit.vector_score, 4),
            "near": is_near(hit.chunk.text, hit.vector_score),
            "figure": find_figure(figures[hit.chunk.key], hit.chunk, sentence),
            "sentence": sentence,
            "text": hit.chunk.text,
            "status": statuses[hit.paper.key].label,
            "notices": statuses[hit.paper.key].lines(),
            "described_figures": [
                {"figure": figure.name, "description": figure.description, "described_by": figure.described_by}
                for figure in library.described.of([hit.chunk])
            ],
        }
        for hit, sentence in zip(hits, sentences, strict=True)
    ]


async def afind_papers(
    session: Session,
    query: str,
    by: Literal["summary", "text"] = "summary",
    from_year: int | None = None,
    to_year: int | None = None,
    page: int = 1,
) -> FoundPapers:
    """Return a page of ten papers near a query, by summary and note or by full text, as the JSON of `find --json`.

    Raises `InputError` for a query without words, years in the wrong order, and when there is no full-text index.
    """
    require_words(query)
    years = year_range(from_year, to_year)
    vector = await session.library.embedding.embed_query(query) if by == "summary" else None
    return await asyncio.to_thread(_find, session.library, query, vector, years, page)


def _find(library: Library, query: str, vector: Vector | None, years: tuple[int, int] | None, page: int) -> FoundPapers:
    """Find a page of papers by their summaries and notes; without a vector, by their text."""
    if vector is None:
        first, last = years or (None, None)
        answer = search_papers(library, query, first, last, page)
        total, following = answer.total, answer.next_page
        shown: list[tuple[Paper, float, dict[str, Any]]] = []
        for hit in answer.hits:
            at = {"chunk_id": hit.chunk.id, "page": hit.chunk.page, "section": hit.chunk.section}
            shown.append((hit.paper, hit.score, {"sentence": hit.sentence, **at}))
    else:
        near = papers_near_to(library, query, vector, years)
        total, following = len(near), page + 1 if page * PAGE_SIZE < len(near) else None
        shown = []
        for item in near[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]:
            said = matching_sentence(library, item.note or item.summary, query)
            shown.append((item.paper, item.score, {"sentence": said, "matched": "note" if item.note else "summary"}))
    statuses = publication_statuses(library, [paper for paper, _, _ in shown])
    papers: list[FoundPaper] = []
    for paper, score, found in shown:
        status = {"status": statuses[paper.key].label, "notices": statuses[paper.key].lines()}
        named = {"key": paper.key, "year": paper.year, "title": paper.title, "score": round(score, 4)}
        papers.append(cast("FoundPaper", {**named, **found, **status}))
    return {"papers": papers, "total": total, "next_page": following}


@threaded
def apassage_window(session: Session, chunk_id: str, window: int) -> PassageWindow:
    """Return a passage and its neighbours in reading order; raises `InputError` for an unknown id."""
    try:
        chunks = session.library.window(chunk_id, window)
    except ValueError:
        chunks = []
    if not chunks:
        raise InputError(f"chunk_id: there is no passage {chunk_id[:80]!r}.", help="Use an id that a search returned.")
    paper = session.library.paper(chunks[0].key)
    return {
        "key": paper.key,
        "title": paper.title,
        "passages": [
            {"chunk_id": item.id, "section": item.section, "page": item.page, "text": item.text} for item in chunks
        ],
    }


@threaded
def aunknown_words(session: Session, words: Sequence[str]) -> list[str]:
    """Return the words that occur in no passage, title, author, year or key."""
    library = session.library
    terms = {word: analyze(word) for word in words}
    try:
        rarity = library.fulltext.rarity([term for found in terms.values() for term in found])
    except FullTextError:
        return []  # the search will report the broken index
    missing = [word for word, found in terms.items() if found and all(rarity[term] == 1.0 for term in found)]
    if not missing:
        return []
    known: set[str] = set()
    for paper in library.papers():
        metadata = f"{paper.key} {paper.title} {paper.venue} {paper.year} {' '.join(paper.authors)}".casefold()
        known.update(_WORD.findall(metadata), [paper.key.casefold()])
    return [word for word in missing if not known.intersection([word.casefold(), *_WORD.findall(word.casefold())])]


@threaded
def akeys_within(
    session: Session,
    papers: Sequence[str] = (),
    without: Sequence[str] = (),
    from_year: int | None = None,
    to_year: int | None = None,
    **labels: Unpack[Labels],
) -> tuple[str, ...]:
    """Return the keys of the papers that a question may draw on, among `papers` if given; empty for the whole library.

    Raises `InputError` for an unknown key, and if no paper is left.
    """
    for key in without:
        session.library.paper(key)
    scope = Scope.within(session.library, papers, (), year_range(from_year, to_year), **labels)
    if scope == Scope() and not without:
        return ()
    found = [paper.key for paper in session.library.papers() if paper.key not in without and scope.holds(paper)]
    if not found:
        raise InputError("No paper is left to answer from.", help="Choose more papers or other years.")
    return tuple(found)


search = blocking(asearch)
