"""Identifies the title and headings of a PDF and their levels.

A heading is recognised by its typography: short, and entirely bold or larger than the body text. Levels come from the
numbering ("3.2"), else from the size.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ..categories import plain_title, said_outright
from ..types import Category
from .page_blocks import LARGER, NUMBERED, Piece, looks_like_heading
from .table_detection import CAPTION

_LONGEST_HEADING = 220  # characters
_HEADING_WORDS = 30
TITLE_PAGES = 5  # the abstract or introduction begins on one of these pages; author lists can be long
DEEPEST = 6
_REFERENCES = re.compile(r"references?(?: list| cited)?|bibliography|(?:literature|works) cited")
_LETTERED = re.compile(r"^([A-Z])\s+(?=\S*[^\W\d_])")
_SIGNS = frozenset("+~<>")  # signs allowed in headings; formulas have others
_OPENING = frozenset({Category.ABSTRACT, Category.INTRODUCTION})


def find_title(pieces: Sequence[Piece], body: float) -> tuple[Piece | None, Piece | None]:
    """The largest line of the first page, and the heading with which the paper's text begins."""
    opens = next(
        (
            piece
            for piece in pieces
            if piece.page < TITLE_PAGES and _is_heading(piece, body) and begins_text(piece.text)
        ),
        None,
    )
    first: list[Piece] = []
    for piece in pieces:
        if piece is opens or piece.page > 0:
            break
        if not piece.table and len(piece.text.split()) > 1 and len(piece.text) <= 2 * _LONGEST_HEADING:
            first.append(piece)
    largest = max(first, key=lambda piece: piece.size, default=None)
    if largest is None or not (largest.size > LARGER * body or largest.bold):
        return None, opens
    return largest, opens


def _is_heading(piece: Piece, body: float) -> bool:
    if piece.table or not all(looks_like_heading(line, body) for line in piece.lines):
        return False
    return reads_as_heading(piece.text, larger=piece.size > LARGER * body)


def reads_as_heading(text: str, *, larger: bool) -> bool:
    """Whether the words can be a heading; `larger` if they are larger than the body text."""
    if len(text) > _LONGEST_HEADING or len(text.split()) > _HEADING_WORDS or CAPTION.match(text):
        return False
    if sum(character.isalpha() for character in text) < max(3, 0.5 * len(text.replace(" ", ""))):
        return False
    if text.endswith("-") or any(unicodedata.category(character) == "Sm" for character in set(text) - _SIGNS):
        return False
    starts = text[0].isupper() or text[0].isdigit() or larger
    return starts and not re.search(r"[,;=]$", text) and (larger or not re.search(r"\w\.$", text))


def levelled(pieces: Sequence[Piece], title: Piece | None, opens: Piece | None, body: float) -> list[Piece]:
    """Pieces with the level of each heading; names and addresses before the abstract do not count."""
    waiting = opens is not None
    headings: set[int] = set()
    listed: Piece | None = None  # the heading of the references, whose titles may be large too
    for index, piece in enumerate(pieces):
        waiting = waiting and piece is not opens
        if piece is title or waiting or not _is_heading(piece, body) or _runs_on(pieces, index, body):
            continue
        if listed is not None and (piece.size < listed.size - 0.2 or piece.bold != listed.bold):
            continue
        headings.add(index)
        listed = piece if lists_references(piece.text) else None
    headings -= listed_in_contents([(index, pieces[index].text) for index in sorted(headings)])
    sizes = sorted({round(pieces[index].size * 2) / 2 for index in headings}, reverse=True)
    letters = _counting([pieces[index].text for index in headings])
    return [
        replace(piece, level=1 if piece is title else _level(piece, sizes, letters) if index in headings else 0)
        for index, piece in enumerate(pieces)
    ]


def lists_references(heading: str) -> bool:
    """Whether it is the heading of the reference list."""
    return _REFERENCES.fullmatch(plain_title(heading)) is not None


def begins_text(heading: str) -> bool:
    """Whether the paper's text begins with this heading; before it are names and addresses."""
    return said_outright(heading) in _OPENING


def _runs_on(pieces: Sequence[Piece], index: int, body: float) -> bool:
    """Whether a sentence that begins in bold continues below, so that it is the start of a paragraph."""
    if pieces[index].size > LARGER * body or index + 1 == len(pieces):
        return False
    below = pieces[index + 1]
    return below.page == pieces[index].page and below.text[:1].islower() and abs(below.size - pieces[index].size) < 0.5


def listed_in_contents(headings: Sequence[tuple[int, str]]) -> set[int]:
    """Indices of the lines of a table of contents: other headings followed by a page number."""
    titles = {text.casefold() for _, text in headings}
    return {
        index
        for index, text in headings
        if (match := re.fullmatch(r"(.*[^\s.])[\s.]++\d{1,3}", text))
        and match.group(1).strip(" .").casefold() in titles
    }


def _counting(titles: Iterable[str]) -> frozenset[str]:
    """The letters that number headings: "A Proofs" with "B Data" does, "A simple example" alone does not."""
    bare = {match.group(1) for title in titles if (match := _LETTERED.match(title))}
    return frozenset(letter for letter in bare if chr(ord(letter) - 1) in bare or chr(ord(letter) + 1) in bare)


def numbered_level(title: str) -> int | None:
    """The level implied by a number such as "3.2" before a heading; None without a number."""
    numbered = NUMBERED.match(title)
    return min(DEEPEST, 2 + (numbered.group(1) or "").count(".")) if numbered else None


def _level(piece: Piece, sizes: Sequence[float], letters: Collection[str]) -> int:
    numbered = numbered_level(piece.text)
    if numbered is not None:
        return numbered
    lettered = _LETTERED.match(piece.text)
    if lettered and lettered.group(1) in letters:
        return 2
    return min(DEEPEST, 2 + sizes.index(round(piece.size * 2) / 2))
