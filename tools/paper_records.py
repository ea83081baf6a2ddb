"""Papers as plain records, for `papers list`, `papers show` and the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..documents import Paper
from ..stores.library import Library
from .context_windows import Passage
from .figure_records import listed_figures
from .outline import OutlinedSection, indexed_text, outline
from .paper_search import statuses_of


def listed_papers(library: Library) -> list[dict[str, Any]]:
    """All papers with their number of chunks and publication status, as in `papers list`; blocks."""
    papers = library.papers()
    statuses = statuses_of(library, papers)
    return [
        {
            "key": paper.key,
            "authors": list(paper.authors),
            "year": paper.year,
            "title": paper.title,
            "venue": paper.venue,
            "chunks": library.chunk_count(paper.key),
            "source": paper.source,
            **statuses[paper.key].as_dict(),
        }
        for paper in papers
    ]


def paper_details(library: Library, key: str, *, text: bool = False) -> dict[str, Any]:
    """The JSON of `papers show`, with the searchable text if asked for; raises `UnknownPaperError`. Blocks."""
    from ..metadata.enriching import stored_metadata  # with the clients of services, which lists do without

    paper, summary, note = library.paper(key), library.summary(key), library.note(key)
    passages = indexed_text(library, key) if text else None
    known = stored_metadata(library.metadata, paper)
    record = _paper_record(paper, summary, note, outline(library, key), passages)
    return {**record, "figures": listed_figures(library, key), "metadata": known.as_dict()}


def text_records(passages: Sequence[Passage]) -> list[dict[str, Any]]:
    """Passages of a paper in reading order."""
    return [
        {"section": item.section, "page": item.page, "chunk_ids": list(item.chunk_ids), "text": item.text}
        for item in passages
    ]


def _paper_record(
    paper: Paper, summary: str, note: str, sections: Sequence[OutlinedSection], passages: Sequence[Passage] | None
) -> dict[str, Any]:
    from ..documents.paper_names import NO_LINK, zotero_link  # with a reader of YAML, which lists do without

    record = {
        **asdict(paper),
        **(zotero_link(paper.bibtex) or NO_LINK).as_dict(),
        "summary": summary,
        "note": note,
        "chunks": sum(item.chunk_count for item in sections),
        "sections": [
            {
                "title": item.section.title,
                "level": item.section.level,
                "category": item.section.category.name.lower(),
                "searchable": item.section.searchable,
                "chunks": item.chunk_count,
                "chunk_range": list(item.chunks) if item.chunks else None,
                "page_range": list(item.pages) if item.pages else None,
            }
            for item in sections
        ],
    }
    if passages is not None:
        record["text"] = text_records(passages)
    return record
