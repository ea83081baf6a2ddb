"""Recognizes papers whose file was renamed by their text, so that they keep their key and citations stay valid."""

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
    """The sources, with renamed files matched to their papers in the library.

    A file counts as renamed if it has the text of a paper whose own file is gone, or if an earlier ingest matched it.
    A `.bib` entry for the file takes precedence over both, since there the user states the key.
    """
    taken = {source.paper.key for source in sources.found}
    free = {key: record.paper for key, record in sorted(records.items()) if key not in taken}
    by_file = {paper.source: paper for paper in free.values()}
    missing = {paper.content_hash: paper for paper in free.values() if not Path(paper.source).is_file()}
    found: list[SourcePaper] = []
    warnings: list[str] = []
    for source in sources.found:
        paper = source.paper
        if paper.key not in records and _has_no_entry(paper):
            known = by_file.get(paper.source) or missing.pop(paper.content_hash, None)
            if known is not None:
                if known.source != paper.source:
                    warnings.append(f"{source.path}: is {known.key} under a new name; it keeps its key and metadata.")
                source = replace(source, paper=_moved(known, paper))
        found.append(source)
    return replace(sources, found=tuple(found), warnings=(*sources.warnings, *warnings))


def _moved(known: Paper, read: Paper) -> Paper:
    """The known paper at its new path, with content from the file if that was edited."""
    if known.content_hash == read.content_hash:
        return replace(known, source=read.source)
    abstract = read.abstract or known.abstract
    return replace(known, source=read.source, content_hash=read.content_hash, abstract=abstract)


def _has_no_entry(paper: Paper) -> bool:
    """Whether the paper's BibTeX was generated from its file, without a `.bib` entry."""
    return paper.bibtex == made_entry(paper)
