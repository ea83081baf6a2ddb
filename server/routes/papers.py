"""Papers: listed, shown and removed."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from ...ingestion.ingest import remove
from ...ingestion.paper_matching import parse_entry, update_metadata
from ...tools.outline import indexed_text
from ...tools.paper_records import listed_papers, paper_details, text_records
from ...tools.paper_search import keys_with_words
from ..orders import paper_removed
from ..request_models import EntryBody, Limit, Offset, Year
from ..response_models import PaperDetails, PaperList, PaperText, problems
from ..server_state import StateOf

router = APIRouter(prefix="/papers", tags=["papers"])
Order = Literal["key", "title", "authors", "year", "venue", "chunks"]


@router.get("", responses=problems())
async def list_papers(
    state: StateOf,
    q: Annotated[str, Query(max_length=200, description="Words of key, title, authors, venue or year.")] = "",
    sort: Order = "key",
    descending: bool = False,
    from_year: Year = None,
    to_year: Year = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> PaperList:
    """The papers whose data contain all given words, in the given order; if none do, those whose text does."""
    library = state.session.library
    papers = [paper for paper in await asyncio.to_thread(listed_papers, library) if _within(paper, from_year, to_year)]
    words = q.casefold().split()
    found = [paper for paper in papers if _has(paper, words)]
    in_text = bool(words) and not found
    if in_text:
        keys = await asyncio.to_thread(keys_with_words, library, words)
        found = [paper for paper in papers if paper["key"] in keys]
    found.sort(key=lambda paper: _rank(paper, sort), reverse=descending)
    return PaperList(
        papers=[_shown(paper) for paper in found[offset : offset + limit]], total=len(found), in_text=in_text
    )


@router.get("/{key:path}/text", responses=problems(404))
async def get_text(key: str, state: StateOf) -> PaperText:
    """The searchable text of a paper, by section and page."""
    passages = await asyncio.to_thread(indexed_text, state.session.library, key)
    return PaperText(key=key, text=text_records(passages))


@router.get("/{key:path}", responses=problems(404))
async def get_paper(key: str, state: StateOf) -> PaperDetails:
    """A paper with its metadata, summary, note and section tree."""
    library = state.session.library
    record = await asyncio.to_thread(paper_details, library, key)
    added_here = state.uploads.place_of(library.paper(key).source) is not None
    bibtex = library.paper(key).bibtex
    return PaperDetails.model_validate({**_shown(record), "added_here": added_here, "bibtex": bibtex})


@router.put("/{key:path}/entry", responses=problems(404))
async def put_entry(key: str, body: EntryBody, state: StateOf) -> PaperDetails:
    """Give a paper the metadata of a BibTeX entry; what the entry lacks stays."""
    entry = await asyncio.to_thread(parse_entry, body.bibtex)
    await update_metadata(state.session.library, {key: entry})
    return await get_paper(key, state)


@router.delete("/{key:path}", status_code=204, responses=problems(404, 409))
async def delete_paper(key: str, state: StateOf) -> None:
    """Remove a paper from the library, and its file if it was uploaded; any other file stays where it is."""
    library, removed = state.session.library, paper_removed(key)
    await state.orders.find(lambda: library.paper(key), removed)
    async with state.orders.on(removed, removed):
        await remove(library, key)
        await state.orders.end(removed)


def _shown(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the name of its file instead of its path."""
    source = str(record["source"])
    return {**record, "source": source.replace("\\", "/").rsplit("/", 1)[-1]}


def _within(paper: dict[str, Any], first: int | None, last: int | None) -> bool:
    year = paper["year"]
    if first is None and last is None:
        return True
    return year is not None and (first is None or first <= year) and (last is None or year <= last)


def _has(paper: dict[str, Any], words: list[str]) -> bool:
    fields = (paper["key"], paper["title"], *paper["authors"], paper["venue"], str(paper["year"] or ""))
    text = " ".join(fields).casefold()
    return all(word in text for word in words)


def _rank(paper: dict[str, Any], sort: Order) -> tuple[Any, ...]:
    value = paper[sort]
    if isinstance(value, int):
        return (value, paper["key"])
    text = " ".join(value) if isinstance(value, list) else value or ""
    return (0 if sort in ("year", "chunks") else text.casefold(), paper["key"])
