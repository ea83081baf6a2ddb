"""Groups lines of a PDF into paragraphs, headings, tables and code, before heading levels are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from .dehyphenation import Hyphens, plain
from .lines import Line

LARGER = 1.12  # times the body text: anything larger is a heading
SMALLER = 0.92  # times the body text: anything smaller is a footnote or a caption
_NEW_PARAGRAPH = 1.35  # times the usual line spacing
_INDENT = (0.8, 4.0)  # times the letter size: the indent of a paragraph's first line
# "3.2 Data", "Appendix B", "A.1 Proofs", "B. Proofs"; whether a bare "A" is a number depends on the other headings.
NUMBERED = re.compile(
    r"^(?:[Aa]ppendix\s+|APPENDIX\s+)?((?:\d{1,2}|[A-Z](?=[.\d]))(?:\.\d{1,2})*)\.?\s+(?=\S*[^\W\d_])"
    r"|^(?:[Aa]ppendix|APPENDIX)\s+([A-Z])\.?\s+(?=\S*[^\W\d_])"
)
ENDS = re.compile(r"[.!?:;\"”')\]]$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A paragraph, heading or table of one or more lines; `level` is 0 unless it is a heading.

    A `part` is the heading of the abstract or contents, whatever its type.
    """

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


def gathered(lines: Sequence[Line], body: float) -> Iterator[Piece]:
    """Group consecutive lines of one paragraph or heading."""
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
    heading, inside = looks_like_heading(line, body), looks_like_heading(above, body)
    if heading or inside:
        # A heading of two lines: same font, close together, and the second is not a numbered heading itself.
        close = 0 < above.y - line.y < max(1.7, usual) * line.size
        return heading and inside and close and _same_font(above, line) and not NUMBERED.match(line.text)
    if abs(above.size - line.size) > 0.1 * body:
        return False
    fall = above.y - line.y
    if not 0 < fall < _NEW_PARAGRAPH * usual * max(line.size, body * 0.8):
        return False
    indent = (line.x - above.x) / max(line.size, 1.0)
    width = max(one.right - one.x for one in group)
    ended = bool(ENDS.search(above.text)) or above.right < above.x + 0.8 * width
    return not (_INDENT[0] < indent < _INDENT[1] and ended and len(above.text) > 20)


def _same_font(one: Line, other: Line) -> bool:
    return abs(one.size - other.size) < 0.2


def looks_like_heading(line: Line, body: float) -> bool:
    if line.table or line.code or not (line.bold or line.size > LARGER * body) or line.size < SMALLER * body:
        return False
    return any(character.isalpha() for character in line.text)


def _piece(group: Sequence[Line]) -> Piece:
    first = group[0]
    bold = all(line.bold for line in group)
    return Piece(first.page, first.size, bold, "", table=first.table, code=first.code, lines=tuple(group))


def written(piece: Piece, hyphens: Hyphens) -> Piece:
    """The piece with its lines joined."""
    if piece.code:
        return replace(piece, text="\n".join(plain(line.text) for line in piece.lines))
    text = plain(piece.lines[0].text)
    for line in piece.lines[1:]:
        text = hyphens.join(text, plain(line.text))
    return replace(piece, text=text.strip())
