"""Completes the entries of cited papers, for references and for the `.bib` beside a text, with what services know.

A field that the user's entry has is never replaced, and the library's own record stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..documents import Paper
from ..documents.bibliography import as_latex, parse_bibliography
from ..errors import InputError
from ..stores.metadata_store import MetadataStore
from .bib_entry import PAGES
from .enriching import StoredMetadata, stored_metadata

_FIELDS: Final = {"volume": "volume", "issue": "number", "pages": "pages"}
_VENUE_FIELDS: Final = {"article": "journal", "inproceedings": "booktitle", "incollection": "booktitle"}
_KIND = re.compile(r"^\s*@\s*(\w+)")
_END = re.compile(r"(?<![\s,])[\s,]*+([})])\s*$")


def completed_papers(store: MetadataStore, papers: Sequence[Paper]) -> list[Paper]:
    """The papers with the DOI, venue, volume, issue and pages that their entries lack; blocks."""
    dois = store.dois(papers)
    return [completed(paper, stored_metadata(store, paper)) if paper.key in dois else paper for paper in papers]


def completed(paper: Paper, known: StoredMetadata) -> Paper:
    """The paper with what is known and its entry lacks; unchanged if the entry could not be read afterwards."""
    filled = {item.field: str(item.value) for item in known.filled}
    kind = _KIND.match(paper.bibtex)
    venue_field = _VENUE_FIELDS.get(kind[1].lower(), "") if kind else ""
    fields = {name: as_latex(filled[field]) for field, name in _FIELDS.items() if field in filled}
    if "pages" in fields:
        fields["pages"] = PAGES.sub(r"\1--\2", fields["pages"])
    if venue_field and "venue" in filled:
        fields[venue_field] = as_latex(filled["venue"])
    if not paper.doi and known.doi:
        fields["doi"] = re.sub(r"[{}\\]", "", known.doi)
    bibtex = _with_fields(paper.bibtex, fields, paper.key)
    if bibtex == paper.bibtex:
        return paper
    return replace(paper, bibtex=bibtex, doi=paper.doi or known.doi, venue=paper.venue or filled.get("venue", ""))


def _with_fields(bibtex: str, fields: Mapping[str, str], key: str) -> str:
    """The entry with these fields at its end; the entry as it was if it could not be read with them."""
    end = _END.search(bibtex)
    if end is None or not fields:
        return bibtex
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    made = "\n".join([f"{bibtex[: end.start()]},", *lines, end[1]])
    try:
        read = parse_bibliography(made, source=key)
    except InputError:
        return bibtex
    return made if set(read.papers) == {key} and not read.refused and not read.warnings else bibtex
