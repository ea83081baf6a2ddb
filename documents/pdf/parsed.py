"""Converts text read from a PDF to a parsed paper, as for markdown."""

from __future__ import annotations

from dataclasses import replace

from ..front_matter import FrontMatter
from ..markdown import Heading, ParsedPaper, assemble
from .structure import PdfText


def parsed_pdf(read: PdfText) -> ParsedPaper:
    """Sections and blocks of a PDF; names and addresses before the abstract are not searchable."""
    front = FrontMatter(title=read.title, authors=read.authors, year=read.year, doi=read.doi)
    headings = [Heading(*heading) for heading in read.headings]
    has_title = bool(headings) and headings[0].level == 1
    paper = assemble(read.text, read.title, front, headings, list(read.blocks), has_title_heading=has_title)
    sections = paper.sections
    if read.opens_with_names and len(sections) > 1:
        sections = (replace(sections[0], searchable=False), *sections[1:])
    return replace(
        paper,
        sections=sections,
        page_starts=tuple(read.pages),
        title_source=read.title_source,
        ocr_pages=read.ocr_pages,
        warnings=tuple(f"OCR could not read page {number}: it {reason}" for number, reason in read.ocr_failed),
    )
