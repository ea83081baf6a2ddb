"""Assembles the pieces of a PDF into the text of a paper, with headings, blocks and page starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..front_matter import FrontMatter
from ..markdown import BlockKind, Heading, ParsedPaper, Span, assemble
from .dehyphenation import Hyphens, plain
from .headings import (
    ENDS,
    SMALLER,
    Piece,
    assign_levels,
    body_size,
    find_title,
    group_lines,
    join_lines,
    mark_front_parts,
    read_authors,
)
from .lines import CAPTION, Line

_NUMBER = re.compile(r"[-−–+]?\d[\d.,]*%?")


@dataclass(frozen=True, slots=True)
class PdfText:
    """A PDF as text.

    `headings` are title, level, start of the line and start of the text below; `blocks` are kind, start and end;
    `pages` is the offset at which each page begins; `title_source` says where the title was found. `unread` are the
    numbers of the pages without text, `ocr_pages` of those that OCR read in the languages `ocr`, `ocr_failed` of those
    that it could not read, with the reason.
    """

    text: str
    headings: Sequence[tuple[str, int, int, int]]
    blocks: Sequence[Span]
    pages: Sequence[int]
    title: str
    title_source: str
    opens_with_names: bool
    doi: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    unread: tuple[int, ...] = ()
    ocr: str = ""
    ocr_pages: tuple[int, ...] = ()
    ocr_failed: tuple[tuple[int, str], ...] = ()


def structure(lines: Sequence[Line], page_count: int) -> PdfText:
    """The text of a paper from its lines in reading order."""
    body = body_size(lines)
    hyphens = Hyphens(plain(line.text) for line in lines if not line.table)
    read = [piece for found in group_lines(lines, body) if not is_scale(piece := join_lines(found, hyphens))]
    pieces = mark_front_parts(read, body)
    title, opens = find_title(pieces, body)
    whole = list(_rejoin(assign_levels(pieces, title, opens, body), body, hyphens))
    return replace(_assemble(whole, page_count, opens is not None), authors=read_authors(pieces, title, opens))


def is_scale(piece: Piece) -> bool:
    """Whether it is the scale of a figure's axis: numbers, with single letters at most."""
    rest = [word for word in piece.text.split() if not _NUMBER.fullmatch(word)]
    several = len(piece.text.split()) - len(rest) > 1
    return several and not (piece.table or piece.code) and all(len(word) == 1 and word.isalpha() for word in rest)


def _rejoin(pieces: Sequence[Piece], body: float, hyphens: Hyphens) -> Iterator[Piece]:
    """Rejoin paragraphs split by a column or page break.

    Pieces between the parts are placed before the paragraph if they are on the page where it began, else after it, so
    that the pages stay in order.
    """
    begun: Piece | None = None
    behind: list[Piece] = []
    for piece in pieces:
        if begun is not None and _is_prose(begun, body) and len(begun.text) >= 40 and not ENDS.search(begun.text):
            if _is_aside(piece, body):
                if piece.page == begun.page:
                    yield piece
                else:
                    behind.append(piece)
                continue
            goes_on = piece.text[:1].islower() or piece.text[:1].isdigit() or piece.text[:1] in '([“"'
            if goes_on and _is_prose(piece, body) and all(piece.page == between.page for between in behind):
                text = hyphens.join(begun.text, piece.text)
                breaks = (len(text) - len(piece.text),) * (piece.page - begun.page - len(begun.breaks))
                begun = replace(begun, text=text, breaks=begun.breaks + breaks)
                continue
        if begun is not None:
            yield begun
        yield from behind
        begun, behind = piece, []
    if begun is not None:
        yield begun
    yield from behind


def _is_prose(piece: Piece, body: float) -> bool:
    return not (piece.level or piece.table or piece.code or _is_aside(piece, body))


def _is_aside(piece: Piece, body: float) -> bool:
    if piece.level or piece.table or piece.code:
        return False
    return piece.size < SMALLER * body or CAPTION.match(piece.text) is not None


def _assemble(pieces: Sequence[Piece], page_count: int, opens_with_names: bool) -> PdfText:
    text = ""
    starts: list[int] = []
    headings: list[tuple[str, int, int, int]] = []
    blocks: list[Span] = []
    title = ""
    for piece in pieces:
        if not piece.text:
            continue
        text += "\n\n" if text else ""
        start = len(text)
        starts += [start] * (piece.page + 1 - len(starts))
        if piece.level:
            text += "#" * piece.level + " "
        begins = len(text)
        text += piece.text
        starts += [begins + offset for offset in piece.breaks[len(starts) - piece.page - 1 :]]
        if piece.level:
            title = piece.text if piece.level == 1 else title
            headings.append((piece.text, piece.level, start, len(text)))
        else:
            kind: BlockKind = "table" if piece.table else "code" if piece.code else "prose"
            blocks.append((kind, start, len(text)))
    starts += [len(text)] * (page_count - len(starts))
    return PdfText(text, headings, blocks, starts, title, "largest line of the first page", opens_with_names)


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
