"""Papers whose file was renamed: known by their text, so that they keep their key and all that cites it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..documents.paper_metadata import made_entry
from ..documents.types import Paper
from ..stores.paper_change import PaperRecord
from .langchain_documents import SourcePaper
from .sources import Sources


def match_renamed(sources: Sources, records: Mapping[str, PaperRecord]) -> Sources:
    """The sources, with the paper of the library for each file that is its file under a new name.

    It is when it has the text of a paper whose own file is gone, or was found to be so by an earlier ingest.
    A `.bib` entry for the file goes before both: it is the user's own word on the key.
    """
    taken = {source.paper.key for source in sources.found}
    free = {key: record.paper for key, record in sorted(records.items()) if key not in taken}
    by_file = {paper.source: paper for paper in free.values()}
    lost = {paper.content_hash: paper for paper in free.values() if not Path(paper.source).is_file()}
    found: list[SourcePaper] = []
    said: list[str] = []
    for source in sources.found:
        paper = source.paper
        if paper.key not in records and _has_no_entry(paper):
            known = by_file.get(paper.source) or lost.pop(paper.content_hash, None)
            if known is not None:
                if known.source != paper.source:
                    said.append(f"{source.path}: is {known.key} under a new name; it keeps its key and metadata.")
                source = replace(source, paper=_moved(known, paper))
        found.append(source)
    return replace(sources, found=tuple(found), warnings=(*sources.warnings, *said))


def _moved(known: Paper, read: Paper) -> Paper:
    """The known paper at its new place; what an edit has changed is taken from the file."""
    if known.content_hash == read.content_hash:
        return replace(known, source=read.source)
    abstract = read.abstract or known.abstract
    return replace(known, source=read.source, content_hash=read.content_hash, abstract=abstract)


def _has_no_entry(paper: Paper) -> bool:
    """Whether the paper's BibTeX was made from what its file says."""
    return paper.bibtex == made_entry(paper)
