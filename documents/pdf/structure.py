"""Lines of a PDF as the text of a paper: paragraphs, headings, tables, and where each page begins.

A heading is told by its type: all of it bold or larger than the running text, and short. Levels come from the
numbering ("3.2") and else from the size.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Any

from citeloom.documents.categories import plain_title, said_outright
from citeloom.documents.markdown import BlockKind, Span
from citeloom.documents.model import Category
from citeloom.documents.pdf.lines import Line
from citeloom.documents.pdf.mending import Hyphens, plain

_LARGER = 1.12  # times the running text: larger than that is a heading
_SMALLER = 0.92  # times the running text: smaller than that is a footnote or a caption
_NEW_PARAGRAPH = 1.35  # times the usual distance of two lines
_INDENT = (0.8, 4.0)  # times the letter size: how far a paragraph's first line is set in
_LONGEST_HEADING = 220  # characters
_HEADING_WORDS = 30
_TITLE_PAGES = 5  # on one of them the abstract or introduction begins; lists of authors can be long
_DEEPEST = 6
_NUMBER = re.compile(r"^(?:appendix )?((?:\d{1,2}|[A-Z])(?:\.\d{1,2})*)\.?\s+(?=\S*[^\W\d_])", re.IGNORECASE)
_CAPTION = re.compile(r"^(?:supplement\w* )?(?:fig(?:ure|\.)?|table|algorithm|listing|scheme)\s*\w?\d", re.IGNORECASE)
_ENDS = re.compile(r"[.!?:;\"”')\]]$")
_REFERENCES = re.compile(r"references?(?: list| cited)?|bibliography|(?:literature|works) cited")
_SIGNS = frozenset("+~<>")  # a heading may have them, a formula has others
_OPENING = frozenset({Category.ABSTRACT, Category.INTRODUCTION})


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph, heading or table of one or more lines; `level` is 0 for what is no heading."""

    page: int
    size: float
    bold: bool
    text: str
    breaks: tuple[int, ...] = ()
    level: int = 0
    table: bool = False
    code: bool = False
    lines: tuple[Line, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class PdfText:
    """A PDF as text.

    `headings` are title, level, start of the line and start of the text below; `blocks` kind, start and end;
    `pages` the offset at which each page begins; `title_source` says where the title was found.
    """

    text: str
    headings: list[tuple[str, int, int, int]]
    blocks: list[Span]
    pages: list[int]
    title: str
    title_source: str
    opens_with_names: bool
    doi: str = ""

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> PdfText:
        """What `asdict` and JSON made of it, as it was; TypeError when fields are missing."""
        return cls(
            **{
                **record,
                "headings": [tuple(heading) for heading in record["headings"]],
                "blocks": [tuple(block) for block in record["blocks"]],
            }
        )


def structure(lines: Sequence[Line], page_count: int) -> PdfText:
    """The text of a paper from its lines in reading order."""
    body = _body_size(lines)
    hyphens = Hyphens(plain(line.text) for line in lines if not line.table)
    pieces = [_written(piece, hyphens) for piece in _gathered(lines, body)]
    title, opens = _title(pieces, body)
    pieces = _levelled(pieces, title, opens)
    pieces = list(_continued(pieces, body, hyphens))
    return _assembled(pieces, page_count, opens is not None)


def _body_size(lines: Sequence[Line]) -> float:
    weight: Counter[float] = Counter()
    for line in lines:
        weight[line.size] += 0 if line.table else len(line.text)
    return weight.most_common(1)[0][0] if weight else 0.0


def _gathered(lines: Sequence[Line], body: float) -> Iterator[Piece]:
    """Lines that follow each other in one paragraph or heading."""
    gaps = [
        above.y - line.y
        for above, line in pairwise(lines)
        if above.page == line.page and above.size == line.size == body and 0 < above.y - line.y < 3 * body
    ]
    usual = median(gaps) / body if gaps else 1.2
    group: list[Line] = []
    for line in lines:
        if group and not _belongs(group, line, usual, body):
            yield _piece(group)
            group = []
        group.append(line)
    if group:
        yield _piece(group)


def _belongs(group: Sequence[Line], line: Line, usual: float, body: float) -> bool:
    above = group[-1]
    if above.page != line.page or above.table or line.table or above.code != line.code:
        return False
    if line.code:
        return True
    heading, inside = _looks_like_heading(line, body), _looks_like_heading(above, body)
    if heading or inside:
        # A heading of two lines: same type, close together, and the second is no numbered heading of its own.
        close = 0 < above.y - line.y < max(1.7, usual) * line.size
        return heading and inside and close and _same_type(above, line) and not _NUMBER.match(line.text)
    if abs(above.size - line.size) > 0.1 * body:
        return False
    fall = above.y - line.y
    if not 0 < fall < _NEW_PARAGRAPH * usual * max(line.size, body * 0.8):
        return False
    indent = (line.x - above.x) / max(line.size, 1.0)
    width = max(one.right - one.x for one in group)
    ended = bool(_ENDS.search(above.text)) or above.right < above.x + 0.8 * width
    return not (_INDENT[0] < indent < _INDENT[1] and ended and len(above.text) > 20)


def _same_type(one: Line, other: Line) -> bool:
    return abs(one.size - other.size) < 0.2


def _looks_like_heading(line: Line, body: float) -> bool:
    if line.table or line.code or not (line.bold or line.size > _LARGER * body) or line.size < _SMALLER * body:
        return False
    return any(character.isalpha() for character in line.text)


def _piece(group: Sequence[Line]) -> Piece:
    first = group[0]
    bold = all(line.bold for line in group)
    return Piece(first.page, first.size, bold, "", table=first.table, code=first.code, lines=tuple(group))


def _written(piece: Piece, hyphens: Hyphens) -> Piece:
    """The piece with its lines joined."""
    if piece.code:
        return replace(piece, text="\n".join(plain(line.text) for line in piece.lines))
    text = plain(piece.lines[0].text)
    for line in piece.lines[1:]:
        text = hyphens.join(text, plain(line.text))
    return replace(piece, text=text.strip())


def _title(pieces: Sequence[Piece], body: float) -> tuple[Piece | None, Piece | None]:
    """The largest line of the first page, and the heading that the paper's own text begins with."""
    opens = next(
        (
            piece
            for piece in pieces
            if piece.page < _TITLE_PAGES and _is_heading(piece, body) and said_outright(piece.text) in _OPENING
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
    if largest is None or not (largest.size > _LARGER * body or largest.bold):
        return None, opens
    return largest, opens


def _is_heading(piece: Piece, body: float) -> bool:
    if piece.table or not all(_looks_like_heading(line, body) for line in piece.lines):
        return False
    text = piece.text
    if len(text) > _LONGEST_HEADING or len(text.split()) > _HEADING_WORDS or _CAPTION.match(text):
        return False
    if sum(character.isalpha() for character in text) < max(3, 0.5 * len(text.replace(" ", ""))):
        return False
    if text.endswith("-") or any(unicodedata.category(character) == "Sm" for character in set(text) - _SIGNS):
        return False
    starts = text[0].isupper() or text[0].isdigit() or piece.size > _LARGER * body
    return starts and not re.search(r"[,;=]$", text) and (piece.size > _LARGER * body or not re.search(r"\w\.$", text))


def _levelled(pieces: Sequence[Piece], title: Piece | None, opens: Piece | None) -> list[Piece]:
    """Pieces with the level of each heading; names and addresses before the abstract are none."""
    body = _body_size([line for piece in pieces for line in piece.lines])
    waiting = opens is not None
    headings: set[int] = set()
    listed: Piece | None = None  # the heading of the references; titles in them may be large, too
    for index, piece in enumerate(pieces):
        waiting = waiting and piece is not opens
        if piece is title or waiting or not _is_heading(piece, body) or _runs_on(pieces, index, body):
            continue
        if listed is not None and (piece.size < listed.size - 0.2 or piece.bold != listed.bold):
            continue
        headings.add(index)
        listed = piece if _REFERENCES.fullmatch(plain_title(piece.text)) else None
    headings -= _listed_in_contents([(index, pieces[index].text) for index in sorted(headings)])
    sizes = sorted({round(pieces[index].size * 2) / 2 for index in headings}, reverse=True)
    return [
        replace(piece, level=1 if piece is title else _level(piece, sizes) if index in headings else 0)
        for index, piece in enumerate(pieces)
    ]


def _runs_on(pieces: Sequence[Piece], index: int, body: float) -> bool:
    """Whether the sentence that begins in bold goes on below: such words begin a paragraph."""
    if pieces[index].size > _LARGER * body or index + 1 == len(pieces):
        return False
    below = pieces[index + 1]
    return below.page == pieces[index].page and below.text[:1].islower() and abs(below.size - pieces[index].size) < 0.5


def _listed_in_contents(headings: Sequence[tuple[int, str]]) -> set[int]:
    """Indices of the lines of a table of contents: other headings with a page number behind."""
    titles = {text.casefold() for _, text in headings}
    return {
        index
        for index, text in headings
        if (match := re.fullmatch(r"(.*\D)[\s.]+\d{1,3}", text)) and match.group(1).strip(" .").casefold() in titles
    }


def _level(piece: Piece, sizes: Sequence[float]) -> int:
    numbered = _NUMBER.match(piece.text)
    if numbered:
        return min(_DEEPEST, 2 + numbered.group(1).count("."))
    return min(_DEEPEST, 2 + sizes.index(round(piece.size * 2) / 2))


def _continued(pieces: Sequence[Piece], body: float, hyphens: Hyphens) -> Iterator[Piece]:
    """Paragraphs that a column or page has cut in two made whole.

    What stands between the parts goes before the paragraph when it is on the page that it began on, else behind
    it, so that the pages stay in order.
    """
    begun: Piece | None = None
    behind: list[Piece] = []
    for piece in pieces:
        if begun is not None and _unfinished(begun, body):
            if _aside(piece, body):
                if piece.page == begun.page:
                    yield piece
                else:
                    behind.append(piece)
                continue
            if _goes_on(piece, body) and all(piece.page == between.page for between in behind):
                begun = _whole(begun, piece, hyphens)
                continue
        if begun is not None:
            yield begun
        yield from behind
        begun, behind = piece, []
    if begun is not None:
        yield begun
    yield from behind


def _whole(first: Piece, second: Piece, hyphens: Hyphens) -> Piece:
    text = hyphens.join(first.text, second.text)
    breaks = (len(text) - len(second.text),) * (second.page - first.page - len(first.breaks))
    return replace(first, text=text, breaks=first.breaks + breaks)


def _aside(piece: Piece, body: float) -> bool:
    return (
        piece.level == 0
        and not piece.table
        and not piece.code
        and (piece.size < _SMALLER * body or bool(_CAPTION.match(piece.text)))
    )


def _unfinished(piece: Piece, body: float) -> bool:
    if piece.level or piece.table or piece.code or _aside(piece, body) or len(piece.text) < 40:
        return False
    return not _ENDS.search(piece.text)


def _goes_on(piece: Piece, body: float) -> bool:
    return not (piece.level or piece.table or piece.code or _aside(piece, body)) and (
        piece.text[:1].islower() or piece.text[:1].isdigit() or piece.text[:1] in '([“"'
    )


def _assembled(pieces: Sequence[Piece], page_count: int, opens_with_names: bool) -> PdfText:
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
