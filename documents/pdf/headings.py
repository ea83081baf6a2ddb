"""Groups lines of a PDF into paragraphs, tables and code, and finds the title and headings with their levels.

A heading is recognised by its typography: short, and entirely bold or larger than the body text. Levels come from the
numbering ("3.2"), else from the size.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from statistics import median

from ..categories import plain_title, standard_section
from ..types import Category
from .dehyphenation import Hyphens, plain
from .lines import Line
from .table_detection import CAPTION

LARGER = 1.12  # times the body text: anything larger is a heading
SMALLER = 0.92  # times the body text: anything smaller is a footnote or a caption
_NEW_PARAGRAPH = 1.35  # times the usual line spacing
_INDENT = (0.8, 4.0)  # times the letter size: the indent of a paragraph's first line
# "3.2 Data", "Appendix B", "A.1 Proofs", "B. Proofs"; whether a bare "A" is a number depends on the other headings.
NUMBERED = re.compile(
    r"^(?:[Aa]ppendix\s+|APPENDIX\s+)?((?:\d{1,2}|[A-Z](?=[.\d]))(?:\.\d{1,2})*)\.?\s+(?=\S*[^\W\d_])"
    r"|^(?:[Aa]ppendix|APPENDIX)\s+([A-Z])\.?\s+(?=\S*[^\W\d_])"
)
_ROMAN = re.compile(r"[IVX]{1,5}\. [A-Z][A-Z ,:&-]{3,80}")  # "II. RELATED WORK": a heading in any type
ENDS = re.compile(r"[.!?:;\"”')\]]$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph, heading (`level` > 0) or table; `part` marks the heading of abstract or contents in any font."""

    page: int
    size: float
    bold: bool
    text: str
    breaks: tuple[int, ...] = ()
    level: int = 0
    table: bool = False
    code: bool = False
    part: bool = False
    lines: tuple[Line, ...] = field(default=(), compare=False)


def body_size(lines: Sequence[Line]) -> float:
    weight: Counter[float] = Counter()
    for line in lines:
        weight[line.size] += 0 if line.table else len(line.text)
    return weight.most_common(1)[0][0] if weight else 0.0


def group_lines(lines: Sequence[Line], body: float) -> Iterator[Piece]:
    """Group consecutive lines of one paragraph or heading."""
    gaps = [
        above.y - line.y
        for above, line in pairwise(lines)
        if above.page == line.page and above.size == line.size == body and 0 < above.y - line.y < 3 * body
    ]
    usual = median(gaps) / body if gaps else 1.2
    groups: list[list[Line]] = []
    for line in lines:
        if groups and _belongs(groups[-1], line, usual, body):
            groups[-1].append(line)
        else:
            groups.append([line])
    for group in groups:
        first, bold = group[0], all(line.bold for line in group)
        yield Piece(first.page, first.size, bold, "", table=first.table, code=first.code, lines=tuple(group))


def _belongs(group: Sequence[Line], line: Line, usual: float, body: float) -> bool:
    above = group[-1]
    if above.page != line.page or above.table or line.table or above.code != line.code:
        return False
    if line.code:
        return True
    heading, inside = looks_like_heading(line, body), looks_like_heading(above, body)
    if heading or inside:
        # A heading of two lines: same font, close together, and the second is not a numbered heading itself.
        close = 0 < above.y - line.y < max(1.7, usual) * line.size
        same_font = abs(above.size - line.size) < 0.2
        return heading and inside and close and same_font and not NUMBERED.match(line.text)
    if abs(above.size - line.size) > 0.1 * body:
        return False
    fall = above.y - line.y
    if not 0 < fall < _NEW_PARAGRAPH * usual * max(line.size, body * 0.8):
        return False
    indent = (line.x - above.x) / max(line.size, 1.0)
    width = max(one.right - one.x for one in group)
    ended = bool(ENDS.search(above.text)) or above.right < above.x + 0.8 * width
    return not (_INDENT[0] < indent < _INDENT[1] and ended and len(above.text) > 20)


def looks_like_heading(line: Line, body: float) -> bool:
    set_apart = line.bold or line.size > LARGER * body or _ROMAN.fullmatch(line.text)
    if line.table or line.code or not set_apart or line.size < SMALLER * body:
        return False
    return any(character.isalpha() for character in line.text)


def join_lines(piece: Piece, hyphens: Hyphens) -> Piece:
    if piece.code:
        return replace(piece, text="\n".join(plain(line.text) for line in piece.lines))
    text = plain(piece.lines[0].text)
    for line in piece.lines[1:]:
        text = hyphens.join(text, plain(line.text))
    return replace(piece, text=text.strip())


_LONGEST_HEADING = 220  # characters
_HEADING_WORDS = 30
TITLE_PAGES = 5  # the abstract or introduction begins on one of these pages; author lists can be long
DEEPEST = 6
_REFERENCES = re.compile(r"references?(?: list| cited)?|bibliography|(?:literature|works) cited")
_LETTERED = re.compile(r"^([A-Z])\s+(?=\S*[^\W\d_])")
_SIGNS = frozenset("+~<>")  # signs allowed in headings; formulas have others


def find_title(pieces: Sequence[Piece], body: float) -> tuple[Piece | None, Piece | None]:
    """The largest line of the first page, and the heading with which the paper's text begins."""
    opens = next(
        (
            piece
            for piece in pieces
            if piece.page < TITLE_PAGES and is_heading(piece, body) and opening_category(piece.text) is not None
        ),
        None,
    )
    first = [
        piece
        for piece in takewhile(lambda piece: piece is not opens and piece.page == 0, pieces)
        if not piece.table and len(piece.text.split()) > 1 and len(piece.text) <= 2 * _LONGEST_HEADING
    ]
    largest = max(first, key=lambda piece: piece.size, default=None)
    if largest is None or not (largest.size > LARGER * body or largest.bold):
        return None, opens
    return largest, opens


def is_heading(piece: Piece, body: float) -> bool:
    """Whether the piece is a heading by its font, or was marked as one."""
    if piece.part:
        return True
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


def assign_levels(pieces: Sequence[Piece], title: Piece | None, opens: Piece | None, body: float) -> list[Piece]:
    """Pieces with the level of each heading; names and addresses before the abstract do not count."""
    waiting = opens is not None
    headings: set[int] = set()
    listed: Piece | None = None  # the heading of the references, whose titles may be large too
    for index, piece in enumerate(pieces):
        waiting = waiting and piece is not opens
        if piece is title or waiting or not is_heading(piece, body):
            continue
        below = pieces[index + 1] if index + 1 < len(pieces) and piece.size <= LARGER * body else None
        if below and below.page == piece.page and below.text[:1].islower() and abs(below.size - piece.size) < 0.5:
            continue  # a sentence that begins in bold and runs on is the start of a paragraph
        if listed is not None and (piece.size < listed.size - 0.2 or piece.bold != listed.bold):
            continue
        headings.add(index)
        listed = piece if _REFERENCES.fullmatch(plain_title(piece.text)) else None
    # Lines of a table of contents: other headings followed by a page number.
    titles = {pieces[index].text.casefold() for index in headings}
    for index in tuple(headings):
        numbered = re.fullmatch(r"(.*[^\s.])[\s.]++\d{1,3}", pieces[index].text)
        if numbered and numbered.group(1).strip(" .").casefold() in titles:
            headings.discard(index)
    sizes = sorted({round(pieces[index].size * 2) / 2 for index in headings if not pieces[index].part}, reverse=True)
    # "A Proofs" with "B Data" are numbered by their letters, "A simple example" alone is not.
    bare = {match.group(1) for index in headings if (match := _LETTERED.match(pieces[index].text))}
    letters = {letter for letter in bare if {chr(ord(letter) - 1), chr(ord(letter) + 1)} & bare}

    def level(piece: Piece) -> int:
        lettered = _LETTERED.match(piece.text)
        if piece.part or (lettered and lettered.group(1) in letters and not NUMBERED.match(piece.text)):
            return 2
        numbered = NUMBERED.match(piece.text)  # "3.2"
        depth = (numbered.group(1) or "").count(".") if numbered else sizes.index(round(piece.size * 2) / 2)
        return min(DEEPEST, 2 + depth)

    return [
        replace(piece, level=1 if piece is title else level(piece) if index in headings else 0)
        for index, piece in enumerate(pieces)
    ]


def opening_category(heading: str) -> Category | None:
    """Abstract or introduction, with which the paper's text begins; before it are names and addresses."""
    category = standard_section(heading)
    return category if category in (Category.ABSTRACT, Category.INTRODUCTION) else None
