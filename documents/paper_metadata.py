"""Determines a paper's metadata from its `.bib` entry, else from the file itself."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

from .bibliography import Bibliography, as_latex, render_entry
from .evidence import text_hash
from .markdown import ParsedPaper
from .paper_names import family_name
from .types import Category, Paper

SUMMARY_WORDS = 150


def describe(path: Path, parsed: ParsedPaper, bibliography: Bibliography) -> tuple[Paper, list[str]]:
    """The paper's metadata, and warnings about what had to be inferred.

    With an entry in the bibliography, the file only fills its empty fields; without one, a BibTeX entry is generated.
    """
    front = parsed.front_matter
    entry = bibliography.match(path, doi=front.doi, title=parsed.title)
    warnings = [f"{path}: {problem}." for problem in (front.problem, *parsed.warnings) if problem]
    if entry is None:
        in_file = parsed.title_source or ("front matter" if front.title else "first heading")
        found = in_file if parsed.title else "file name"
        read = " and ".join(name for name, value in (("authors", front.authors), ("year", front.year)) if value)
        rest = f", its {read} from the first page" if read and parsed.page_starts else ""
        if not bibliography.has_unreadable_entry(path, doi=front.doi, title=parsed.title):
            warnings.append(f"{path}: no .bib entry; its title was taken from the {found}{rest}.")
    paper = entry or Paper(key=key_from_path(path), title="")
    paper = replace(
        paper,
        title=paper.title or parsed.title or path.stem,
        authors=paper.authors or front.authors,
        family_names=paper.family_names or tuple(family_name(author) for author in front.authors),
        year=paper.year or front.year,
        venue=paper.venue or front.venue,
        doi=paper.doi or front.doi,
        abstract=paper.abstract or parsed.abstract(),
        source=str(path.resolve()),
        content_hash=text_hash(parsed.text),
        pages=len(parsed.page_starts) or paper.pages,
        ocr_pages=parsed.ocr_pages,
    )
    return (paper if paper.bibtex else replace(paper, bibtex=make_entry(paper))), warnings


def key_from_path(path: Path) -> str:
    """A citation key from a file name, safe in BibTeX, pandoc and LaTeX."""
    plain = unicodedata.normalize("NFKD", path.stem).encode("ascii", "ignore").decode()
    key = re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-")
    return key or "paper-" + hashlib.sha256(path.stem.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def make_entry(paper: Paper) -> str:
    """Generate a BibTeX entry for a paper without one."""
    authors = " and ".join(as_latex(re.sub(r"\band\b", "{and}", author)) for author in paper.authors)
    fields = {
        "title": "{" + as_latex(paper.title) + "}",
        "author": authors,
        "year": str(paper.year or ""),
        "journal": as_latex(paper.venue),
        "doi": re.sub(r"[{}\\]", "", paper.doi),
    }
    return render_entry("article" if paper.venue else "misc", paper.key, fields)


def has_own_entry(paper: Paper) -> bool:
    """Whether the paper's entry was supplied rather than generated from its metadata."""
    return bool(paper.bibtex) and paper.bibtex != make_entry(paper)


def extractive_summary(parsed: ParsedPaper, *, words: int = SUMMARY_WORDS) -> str:
    """The first prose of the searchable sections, up to the end of the paragraph that exceeds `words`."""
    taken: list[str] = []
    count = 0
    wanted = [section for section in parsed.sections if section.searchable]
    wanted.sort(key=lambda section: section.category is Category.OTHER)  # stable sort: the body before boxes
    for section in wanted:
        for block in parsed.section_blocks(section):
            text = parsed.text[block.start : block.end]
            if block.kind != "prose" or len(text.split()) < 12 or text.lstrip().startswith(("![", "<", ":::")):
                continue
            room = words - count
            taken.append(" ".join(text.split()[: max(room, 0) + words // 3]))
            count += len(text.split())
            if count >= words:
                return "\n\n".join(taken)
    return "\n\n".join(taken) or parsed.title
