"""Gives papers of the library the metadata of BibTeX entries without reading their files again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..documents.bibliography import Bibliography, parse_bibliography
from ..documents.types import Paper
from ..errors import InputError
from ..stores.backends import backend_of
from ..stores.library import Library
from ..stores.paper_change import PaperRecord
from .indexing import to_end
from .plan import metadata_hash

_ENTRY_KEY = re.compile(r"(@\s*\w+\s*[{(]\s*)[^\s,{}()]+")


class EntryError(InputError):
    """A text that is not one BibTeX entry of a paper."""

    default_help = "Give one entry, such as @article{key, title = {...}, author = {...}, year = {2024}}."


def parse_entry(bibtex: str) -> Paper:
    """The paper of a text that holds one entry; raises `EntryError`."""
    read = parse_bibliography(bibtex, source="The entry")
    if read.refused:
        raise EntryError(f"The entry: {read.refused[0].reason}.")
    if len(read.papers) != 1:
        raise EntryError(f"The text holds {len(read.papers) or 'no'} {'entries' if len(read.papers) > 1 else 'entry'}.")
    (paper,) = read.papers.values()
    if not paper.title:
        raise EntryError("The entry has no title.")
    return paper


def matching_entries(library: Library, bibliography: Bibliography) -> dict[str, Paper]:
    """The entries that match papers of the library, by the papers' keys; blocks."""
    found = {
        key: bibliography.papers.get(key)
        or bibliography.match(Path(record.paper.source), doi=record.paper.doi, title=record.paper.title)
        for key, record in library.records().items()
    }
    return {key: entry for key, entry in found.items() if entry is not None}


async def update_metadata(library: Library, entries: Mapping[str, Paper]) -> list[str]:
    """Give papers, by key, the metadata of entries, and return those that changed; raises `UnknownPaperError`."""
    async with backend_of(library.home).writer_lock().held(lambda pid: None):
        for key in entries:
            library.paper(key)
        records = library.records()
        changed = [
            record
            for key, entry in entries.items()
            if (record := _with_metadata(records[key], entry)).metadata_hash != records[key].metadata_hash
        ]
        if changed:
            await to_end(library.catalog.update_metadata, changed)
    return [record.paper.key for record in changed]


def _with_metadata(record: PaperRecord, entry: Paper) -> PaperRecord:
    """The record with the fields of the entry; its key, its file and what the entry lacks stay."""
    old = record.paper
    paper = replace(
        old,
        title=entry.title or old.title,
        authors=entry.authors or old.authors,
        family_names=entry.family_names or old.family_names,
        year=entry.year or old.year,
        venue=entry.venue or old.venue,
        doi=entry.doi or old.doi,
        url=entry.url or old.url,
        abstract=entry.abstract or old.abstract,
        bibtex=_ENTRY_KEY.sub(lambda match: match.group(1) + old.key, entry.bibtex, count=1) or old.bibtex,
    )
    return replace(record, paper=paper, metadata_hash=metadata_hash(paper))
