"""Makes BibTeX entries of service data, and completes or appends to a `.bib` without replacing the user's content."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ..documents import Paper
from ..documents.bibliography import Bibliography, as_latex, parse_bibliography, read_bibliography, render_entry
from ..documents.paper_names import Identifier
from ..documents.safe_files import replace_file
from ..errors import InputError
from ..stores.metadata_store import MetadataStore
from ..text.words import read_rules
from .enriching import StoredMetadata, stored_metadata
from .service_works import Work

KINDS: Final = read_rules(__file__, "kinds_of_works")
VENUE_FIELD: Final[Mapping[str, str]] = KINDS["venue_fields"]
_COMPLETED: Final = {"volume": "volume", "issue": "number", "pages": "pages"}
_KIND = re.compile(r"^\s*@\s*(\w+)")
_END = re.compile(r"(?<![\s,])[\s,]*+([})])\s*$")
_PAGES = re.compile(r"^\s*([\w.]+)\s*[-\u2013\u2014]+\s*([\w.]+)\s*$")


def bib_entry(work: Work, key: str) -> str:
    entry_type = KINDS["crossref"].get(work.kind, "article" if work.venue and not work.is_preprint else "misc")
    arxiv = Identifier(work.doi.lower()).arxiv
    venue = work.venue or (work.publisher if entry_type in ("phdthesis", "techreport") else "")
    fields = {
        "title": "{" + as_latex(work.title) + "}",
        "author": " and ".join(
            bib_name(author.family, author.name.removesuffix(author.family).strip())
            if author.name.endswith(author.family)
            else _protect(as_latex(author.name))
            for author in work.authors
        ),
        "year": str(work.year or ""),
        VENUE_FIELD.get(entry_type, "howpublished"): as_latex(venue),
        "volume": as_latex(work.volume),
        "number": as_latex(work.issue),
        "pages": as_latex(normalize_pages(work.pages)),
        "publisher": as_latex(work.publisher) if entry_type in ("book", "incollection", "inproceedings") else "",
        "doi": re.sub(r"[{}\\]", "", work.doi),
        "eprint": arxiv,
        "archiveprefix": "arXiv" if arxiv else "",
    }
    return render_entry(entry_type, key, fields)


def bib_name(family: str, given: str) -> str:
    """A name as "Family, Given", so that the parts are not confused; one without given names in braces."""
    if not given:
        return "{" + as_latex(family) + "}"
    return _protect(", ".join(as_latex(part).replace(",", " ") for part in (family, given)))


def _protect(name: str) -> str:
    """Put words in braces that would separate or end a list of names."""
    return re.sub(r"\b(and|others)\b", r"{\1}", name)


def normalize_pages(pages: str) -> str:
    """A page range in BibTeX form; anything else unchanged."""
    return _PAGES.sub(r"\1--\2", pages)


def complete_papers(store: MetadataStore, papers: Sequence[Paper]) -> list[Paper]:
    """Fill in the DOI, venue, volume, issue and pages missing from the papers' entries; blocks."""
    if store.is_empty():
        return list(papers)
    dois = store.dois(papers)
    return [complete_paper(paper, stored_metadata(store, paper)) if paper.key in dois else paper for paper in papers]


def complete_paper(paper: Paper, known: StoredMetadata) -> Paper:
    """The paper with missing fields filled in; unchanged if the resulting entry would be unreadable."""
    filled = {item.field: str(item.value) for item in known.filled}
    kind = _KIND.match(paper.bibtex)
    entry_type = kind[1].lower() if kind else ""
    venue_field = VENUE_FIELD[entry_type] if entry_type in ("article", "inproceedings", "incollection") else ""
    fields = {name: as_latex(filled[field]) for field, name in _COMPLETED.items() if field in filled}
    if "pages" in fields:
        fields["pages"] = normalize_pages(fields["pages"])
    if venue_field and "venue" in filled:
        fields[venue_field] = as_latex(filled["venue"])
    if not paper.doi and known.doi:
        fields["doi"] = re.sub(r"[{}\\]", "", known.doi)
    end = _END.search(paper.bibtex)
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    if end is None or not lines:
        return paper
    bibtex = "\n".join([f"{paper.bibtex[: end.start()]},", *lines, end[1]])
    try:
        read = parse_bibliography(bibtex, source=paper.key)
    except InputError:
        return paper
    if set(read.papers) != {paper.key} or read.refused or read.warnings:
        return paper
    return replace(paper, bibtex=bibtex, doi=paper.doi or known.doi, venue=paper.venue or filled.get("venue", ""))


def read_bib(path: Path) -> Bibliography:
    """Read a `.bib` that may not exist yet; raises `InputError` if it is unreadable."""
    return read_bibliography(path) if path.exists() else Bibliography()


def append_entries(path: Path, entries: Sequence[str]) -> None:
    """Append entries to a `.bib` atomically, keeping its content byte for byte. Raises `InputError`."""
    text = "\n\n".join(entries)
    made = parse_bibliography(text, source=str(path))
    if made.refused or len(made.papers) != len(entries):
        raise InputError(f"{path}: an entry could not be made ({made.refused[0].reason if made.refused else 'key'}).")
    try:
        before = path.read_bytes() if path.exists() else b""
        gap = b"" if not before else b"\n" if before.endswith(b"\n") else b"\n\n"
        write_durably(path, before + gap + text.encode("utf-8") + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).", help="Choose another .bib.") from error


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file atomically, with its folder created if missing; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path.resolve() if path.is_symlink() else path, content)
