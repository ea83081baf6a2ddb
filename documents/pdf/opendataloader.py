"""Converts the output of opendataloader-pdf to the text of a paper, under the same rules as our own reader.

Its JSON is a tree: `kids` of the document are headings with a level, paragraphs, lists and tables, each with its page
(1, 2 ...) and box (left, lower, right, upper edge, in points). Headings and their levels come from there; our own
reading of the same file gives the number of pages, metadata and DOI, and repairs words with lost ligatures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from .dehyphenation import Hyphens, lost_ligatures, plain, with_words, words_made_whole
from .headings import (
    DEEPEST,
    TITLE_PAGES,
    begins_text,
    listed_in_contents,
    lists_references,
    numbered_level,
    reads_as_heading,
)
from .lines import ON_PAGES, is_number, without_numbers
from .page_blocks import LARGER, Piece
from .pages import LEAST_ROWS, LONGEST_CELL, table_markdown
from .structure import PdfText, is_scale, put_together

_BOLD = re.compile(r"bold|black|heavy", re.IGNORECASE)
_ONE_WIDTH = re.compile(r"mono(?!type)|courier|consol|(?<!uni)code|typewriter|cmtt", re.IGNORECASE)
_PARTS = ("kids", "list items", "rows", "cells")
_RUNNING_HEAD = 200  # characters; longer text that repeats on several pages is not a running head


@dataclass(frozen=True, slots=True)
class _Element:
    """A leaf of the tree; `level` is 0 unless it is a heading, `lines` are as printed."""

    page: int
    upper: float
    lower: float
    size: float
    font: str
    level: int
    lines: tuple[str, ...]
    table: bool = False

    @property
    def code(self) -> bool:
        return self.level == 0 and not self.table and _ONE_WIDTH.search(self.font) is not None


def text_of(document: dict[str, Any], own: PdfText) -> PdfText:
    """The text of a paper from the JSON object `document` and our `own` reading; raises ValueError if there is none."""
    pages = len(own.pages)
    elements = sorted(_elements(document, pages), key=lambda element: element.page)
    elements = _with_repaired_words(_without_running_heads(elements), own.text)
    weight = Counter[float]()
    for element in elements:
        weight[element.size] += 0 if element.table else sum(map(len, element.lines))
    body = weight.most_common(1)[0][0] if weight else 0.0
    hyphens = Hyphens(line for element in elements if not element.table for line in element.lines)
    pieces = [piece for element in elements if not is_scale(piece := _piece(element, hyphens))]
    pieces, opens = _levelled(pieces, body)
    read = put_together(pieces, body, hyphens, pages, opens)
    if not read.blocks:
        raise ValueError("no text")
    from_metadata = own.title_source != read.title_source
    title, source = (
        (own.title, own.title_source) if from_metadata or not read.title else (read.title, read.title_source)
    )
    return replace(read, title=title, title_source=source, doi=own.doi, unread=own.unread)


def _elements(node: dict[str, Any], pages: int) -> Iterator[_Element]:
    """The leaves below a node in reading order; a table is a leaf."""
    stack: list[Any] = [node]
    while stack:
        part = stack.pop()
        if not isinstance(part, dict):
            continue
        rows = _cells(part) if part.get("type") == "table" else []
        if len(rows) >= LEAST_ROWS and min(map(len, rows)) >= LEAST_ROWS and _are_cells(rows):
            yield _element(part, pages, (table_markdown(rows),), table=True)
            continue
        content = part.get("content")
        if isinstance(content, str) and content.strip():
            yield _element(part, pages, tuple(line for line in plain(content).splitlines() if line.strip()))
        stack += [kid for name in reversed(_PARTS) for kid in reversed(part.get(name) or [])]


def _element(part: dict[str, Any], pages: int, lines: tuple[str, ...], *, table: bool = False) -> _Element:
    box = part.get("bounding box") or (0, 0, 0, 0)
    level = max(1, int(part.get("heading level") or 1)) if part.get("type") == "heading" else 0
    page = min(max(int(part.get("page number") or 1), 1), pages) - 1
    size = round(float(part.get("font size") or 0), 1)
    return _Element(page, float(box[3]), float(box[1]), size, str(part.get("font") or ""), level, lines, table)


def _cells(table: dict[str, Any]) -> list[list[str]]:
    """The rows of a table; a cell that spans columns is placed in the first of them."""
    columns = int(table.get("number of columns") or 0)
    rows: list[list[str]] = []
    for row in table.get("rows") or []:
        line = [""] * columns
        for cell in row.get("cells") or []:
            place = int(cell.get("column number") or 1) - 1
            if 0 <= place < columns:
                line[place] = " ".join(" ".join(_words(cell)).split())
        rows.append(line)
    return rows


def _words(cell: dict[str, Any]) -> Iterator[str]:
    return (plain(line) for element in _elements({"kids": cell.get("kids")}, 1) for line in element.lines)


def _are_cells(rows: Sequence[Sequence[str]]) -> bool:
    """Whether it is a real table, not running text between unrelated lines."""
    return max(len(cell) for row in rows for cell in row) <= LONGEST_CELL


def _without_running_heads(elements: Sequence[_Element]) -> list[_Element]:
    """Drop page numbers, and the top or bottom text of three or more pages that is equal up to numbers."""
    edges: set[int] = set()
    for _, there in groupby(range(len(elements)), key=lambda index: elements[index].page):
        page = list(there)
        edges.add(max(page, key=lambda index: elements[index].upper))
        edges.add(min(page, key=lambda index: elements[index].lower))
    seen = Counter(text for _, text in {(elements[index].page, _bare(elements[index])) for index in edges})
    running = {text for text, count in seen.items() if count >= ON_PAGES and len(text) < _RUNNING_HEAD}
    return [
        element
        for index, element in enumerate(elements)
        if element.table or index not in edges or not (_bare(element) in running or is_number(" ".join(element.lines)))
    ]


def _bare(element: _Element) -> str:
    return without_numbers(" ".join(element.lines))


def _with_repaired_words(elements: Sequence[_Element], own: str) -> list[_Element]:
    """Repair words that lost a ligature from our own reading."""
    texts = [line for element in elements for line in element.lines]
    words = words_made_whole(texts, [own]) if lost_ligatures(texts) else {}
    return [replace(element, lines=tuple(with_words(line, words) for line in element.lines)) for element in elements]


def _piece(element: _Element, hyphens: Hyphens) -> Piece:
    text = element.lines[0].rstrip()
    for line in element.lines[1:]:
        text = f"{text}\n{line.rstrip()}" if element.code else hyphens.join(text, line.strip())
    bold = _BOLD.search(element.font) is not None
    return Piece(
        element.page, element.size, bold, text.strip(), level=element.level, table=element.table, code=element.code
    )


def _levelled(pieces: Iterable[Piece], body: float) -> tuple[list[Piece], bool]:
    """Pieces with heading levels below the title's, and whether author names precede the text.

    Names before the abstract, captions, lines of a table of contents and titles in the references are not headings.
    """
    pieces = list(pieces)
    opens = next(
        (
            index
            for index, piece in enumerate(pieces)
            if piece.level and piece.page < TITLE_PAGES and begins_text(piece.text)
        ),
        None,
    )
    first = [index for index, piece in enumerate(pieces[:opens]) if piece.level and piece.page == 0]
    title = min(first, key=lambda index: (pieces[index].level, -pieces[index].size), default=None)
    headings = set(_headings(pieces, opens or 0, body)) - {title}
    headings -= listed_in_contents([(index, pieces[index].text) for index in sorted(headings)])
    depths = _depths({index: pieces[index] for index in sorted(headings)})
    levelled = [
        replace(piece, level=1 if index == title else depths.get(index, 0)) for index, piece in enumerate(pieces)
    ]
    return levelled, opens is not None


def _depths(headings: Mapping[int, Piece]) -> dict[int, int]:
    """Levels from 2 on without gaps: the program ranks font sizes, including those of labels, so 9 can follow 3."""
    depths: dict[int, int] = {}
    above: list[tuple[int, int]] = []  # the program's level, and ours
    for index, heading in headings.items():
        while above and above[-1][0] >= heading.level:
            above.pop()
        inside = above[-1][1] + 1 if above else 2
        depths[index] = numbered_level(heading.text) or min(DEEPEST, inside)
        above.append((heading.level, depths[index]))
    return depths


def _headings(pieces: Sequence[Piece], start: int, body: float) -> Iterator[int]:
    listed: int | None = None  # the level of the reference list's heading
    for index, piece in enumerate(pieces[start:], start):
        if not piece.level or not reads_as_heading(piece.text, larger=piece.size > LARGER * body):
            continue
        if listed is not None and piece.level > listed:
            continue
        listed = piece.level if lists_references(piece.text) else None
        yield index
