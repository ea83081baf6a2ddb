"""Reading tools besides evidence search: windows, introductions, summaries and paper search.

Passages are returned as chunk ids.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ..documents import Paper
from ..documents.publication_status import PublicationStatus
from ..errors import InputError
from ..plurals import counted
from ..stores.library import Library
from .paper_search import search_papers, statuses_of

SUMMARIES = 5


@dataclass(frozen=True, slots=True)
class Passages:
    """A line for the model and the chunks whose texts belong under it."""

    lead: str
    chunk_ids: tuple[str, ...] = ()


def read_window(library: Library, chunk_id: str, size: int) -> Passages:
    """The chunks around one; an unknown chunk is reported to the model."""
    try:
        chunks = library.window(chunk_id, size)
    except (InputError, ValueError):
        chunks = []
    if not chunks:
        return Passages(f"There is no chunk {chunk_id!r} in the library.")
    return Passages(f"The passages around {chunk_id}:", tuple(chunk.id for chunk in chunks))


def read_introduction(library: Library, key: str) -> Passages:
    """The first passages of a paper's introduction; an unknown key is reported to the model."""
    try:
        paper = library.paper(key)
    except InputError:
        return Passages(f"There is no paper with the key {key!r} in the library.")
    chunks = library.introduction(key)
    if not chunks:
        return Passages(f"{key} ({paper.title}) has no introduction.")
    return Passages(f"The introduction of {key} ({paper.title}):", tuple(chunk.id for chunk in chunks))


async def read_summaries(library: Library, query: str) -> Passages:
    """The papers nearest to a query by summary and the user's notes, which are part of the answer itself."""
    vector = await library.embedding.embed_query(query)
    near = await asyncio.to_thread(library.nearest_papers, vector, SUMMARIES)
    if not near:
        return Passages("The library has no summaries.")
    statuses = await asyncio.to_thread(statuses_of, library, [item.paper for item in near])
    lines: list[str] = []
    for item in near:
        named = _named(item.paper, statuses[item.paper.key])
        lines.append(f"- {named}: {' '.join(item.summary.split())}")
        if item.note:
            lines.append(f"  The user's own note on it, which is no words of the paper: {' '.join(item.note.split())}")
    return Passages("\n".join(["Papers whose summaries are nearest to the query:", *lines]))


def read_papers(library: Library, query: str, min_year: int | None, max_year: int | None, page: int) -> Passages:
    """One page of the papers whose text contains the words of a query; bad arguments are reported to the model."""
    try:
        answer = search_papers(library, query, min_year, max_year, page)
    except InputError as error:
        return Passages(error.message)
    if not answer.hits:
        return Passages("No paper has these words." if page == 1 else f"There is no page {page}.")
    statuses = statuses_of(library, [hit.paper for hit in answer.hits])
    lines = [
        f"- {_named(hit.paper, statuses[hit.paper.key])}; chunk {hit.chunk.id}: {hit.sentence}" for hit in answer.hits
    ]
    more = [f"There are more on page {answer.next_page}."] if answer.next_page else []
    return Passages(
        "\n".join([f"Page {page} of {counted(answer.total, 'paper')} with words of the query:", *lines, *more])
    )


def _named(paper: Paper, status: PublicationStatus) -> str:
    """Key, year and title, with RETRACTED and the like."""
    mark = f" [{status.label.upper()}]" if status.label else ""
    return f"{paper.key} ({paper.year or 'no year'}), {paper.title}{mark}"
