"""Matches files, notes and BibTeX entries to papers of the library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..documents.bibliography import NO_YEAR, Bibliography, Refusal, has_own_entry, make_entry, parse_bibliography
from ..documents.safe_files import FileRefusedError
from ..documents.types import Paper, note_stem
from ..errors import InputError
from ..stores.library import Library
from ..stores.paper_catalog import PaperRecord
from .indexing import run_to_end
from .plan import metadata_hash
from .reading import printable, read_text
from .sources import SourcePaper, Sources, outside_target, refuse_link


def match_renamed_files(sources: Sources, records: Mapping[str, PaperRecord]) -> Sources:
    """Match renamed files to their papers in the library.

    A file counts as renamed if it has the text of a paper whose own file is gone, or if an earlier ingest matched it.
    A `.bib` entry for the file takes precedence, since it states the key.
    """
    taken = {source.paper.key for source in sources.found}
    free = {key: record.paper for key, record in sorted(records.items()) if key not in taken}
    by_file = {paper.source: paper for paper in free.values()}
    missing = {paper.content_hash: paper for paper in free.values() if not Path(paper.source).is_file()}
    found: list[SourcePaper] = []
    warnings: list[str] = []
    for source in sources.found:
        paper = source.paper
        if paper.key not in records and paper.bibtex == make_entry(paper):  # it has no `.bib` entry
            known = by_file.get(paper.source) or missing.pop(paper.content_hash, None)
            if known is not None:
                if known.source != paper.source:
                    warnings.append(f"{source.path} is {known.key} under a new name; it keeps its key and metadata.")
                edited = known.content_hash != paper.content_hash
                abstract = (edited and paper.abstract) or known.abstract
                moved = replace(known, source=paper.source, content_hash=paper.content_hash, abstract=abstract)
                source = replace(source, paper=moved)
        found.append(source)
    return replace(sources, found=tuple(found), warnings=(*sources.warnings, *warnings))


def leave_out_copies(sources: Sources, records: Mapping[str, PaperRecord]) -> Sources:
    """Drop new sources whose text another source or a paper of the library has, with a warning that names both.

    Call this when the keys are final. A paper with a `.bib` entry stays, since the entry states the key.
    """
    papers = {source.paper.key: source.paper for source in sources.found}
    files = {paper.source for paper in papers.values()}
    first = {
        record.paper.content_hash: key
        for key, record in records.items()
        if record.paper.source not in files and Path(record.paper.source).is_file()
    }
    stays = {key for key, paper in papers.items() if key in records or has_own_entry(paper)}
    first |= {papers[key].content_hash: key for key in reversed(papers) if key in stays}
    for paper in papers.values():
        first.setdefault(paper.content_hash, paper.key)
    kept, warnings = list[SourcePaper](), list(sources.warnings)
    for source in sources.found:
        same = first[source.paper.content_hash]
        if source.paper.key == same or source.paper.key in stays:
            kept.append(source)
            continue
        warnings = [line for line in warnings if line not in source.notices]
        warnings.append(f"{source.path} is the same paper as {same}, and was not added again.")
    return replace(sources, found=tuple(kept), warnings=tuple(warnings))


def attach_notes(sources: Sources) -> Sources:
    """Attach the notes next to the files to their sources; warnings name notes that match no paper.

    Call this when the keys are final. A note that cannot be read is refused, and its paper is ingested without a note.
    A source without a note file keeps the note it came with.
    """
    names: dict[tuple[Path, str], Path] = {}  # notes by folder and stem
    for folder in dict.fromkeys(source.folder for source in sources.found if source.folder is not None):
        with suppress(OSError):  # a folder that can be entered but not listed
            for file in sorted(folder.iterdir()):
                if (stem := note_stem(file)) is not None and file.is_file():
                    names.setdefault((folder, stem), file)
    of_paper: dict[str, Path] = {}  # by key; a match by key takes precedence over one by file name
    stems = [(source, source.paper.key) for source in sources.found]
    for source, stem in [*stems, *((source, source.path.stem) for source in sources.found)]:
        if source.folder is not None and source.paper.key not in of_paper and (source.folder, stem) in names:
            of_paper[source.paper.key] = names.pop((source.folder, stem))
    found: list[SourcePaper] = []
    refused = list(sources.refused)
    for source in sources.found:
        note, text = of_paper.get(source.paper.key), source.note
        try:
            if note is not None:
                target = None if sources.follow_links else outside_target(note, (*sources.folders, note.parent))
                if target is not None:
                    raise FileRefusedError(refuse_link(note, target).reason)
                text = read_text(note, blank=True)
        except FileRefusedError as error:
            refused.append(Refusal(str(note), str(error)))
            text = ""
        found.append(replace(source, note=text))
    owned = {file.resolve() for file in of_paper.values()}
    of_refused = {(Path(item.path).parent.resolve(), Path(item.path).stem) for item in sources.refused}
    warnings = [
        f"{printable(str(file))} is a note, but matches no paper in its folder; name it after the paper's key or file."
        for file in sources.notes
        if file.resolve() not in owned and (file.parent.resolve(), note_stem(file)) not in of_refused
    ]
    return replace(sources, found=tuple(found), refused=tuple(refused), warnings=(*sources.warnings, *warnings))


_ENTRY_FIELDS = ("title", "authors", "family_names", "year", "venue", "doi", "url", "abstract")
_ENTRY_KEY = re.compile(r"(@\s*\w+\s*[{(]\s*)[^\s,{}()]+")


class EntryError(InputError):
    """A text is not one BibTeX entry of a paper."""

    default_help = "Give one entry, such as @article{key, title = {...}, author = {...}, year = {2024}}."


def parse_entry(bibtex: str) -> Paper:
    """Parse a text that holds one BibTeX entry; raises `EntryError`."""
    read = parse_bibliography(bibtex, source="The entry")
    if read.refused:
        raise EntryError(f"The entry: {read.refused[0].reason}.")
    if len(read.papers) != 1:
        raise EntryError(f"The text holds {len(read.papers) or 'no'} {'entries' if len(read.papers) > 1 else 'entry'}.")
    (paper,) = read.papers.values()
    if wrong := next((line for line in read.warnings if line.endswith(NO_YEAR)), ""):
        raise EntryError(wrong)
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
    """Update papers with the metadata of entries, by key; returns the changed keys. Raises `UnknownPaperError`."""
    async with library.home.writer_lock().held(lambda pid: None):
        for key in entries:
            library.paper(key)
        records = library.records()
        changed = []
        for key, entry in entries.items():  # key, file and fields that an entry lacks stay unchanged
            head, bibtex = _ENTRY_KEY.search(entry.bibtex), entry.bibtex
            if head is not None:
                bibtex = f"{bibtex[: head.end(1)]}{key}{bibtex[head.end() :]}"
            stated = {name: getattr(entry, name) for name in _ENTRY_FIELDS} | {"bibtex": bibtex}
            paper = replace(records[key].paper, **{name: value for name, value in stated.items() if value})
            if (new := metadata_hash(paper)) != records[key].metadata_hash:
                changed.append(replace(records[key], paper=paper, metadata_hash=new))
        if changed:
            await run_to_end(library.catalog.update_metadata, changed)
    return [record.paper.key for record in changed]
