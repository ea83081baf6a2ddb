"""Groups lines of a PDF into paragraphs, tables and code, and finds the title and headings with their levels.

A heading is recognised by its typography: short, and entirely bold or larger than the body text. Levels come from the
numbering ("3.2"), else from the size. Abstract, authors and year are read from the first pages; no author if in doubt,
since a wrong one is worse.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from statistics import median

from ...text.words import one_line
from ..categories import plain_title, standard_section
from ..paragraph_kinds import PARAGRAPH_RULES, is_boilerplate
from ..types import Category
from .dehyphenation import Hyphens, plain
from .lines import CAPTION, Line

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


_LABEL = re.compile(r"(?:abstract|a b s t r a c t|summary|contents|table of contents)", re.IGNORECASE)
_RUN_IN = re.compile(r"(?:Abstract|ABSTRACT|A B S T R A C T)(?:\s*[.:\u2014\u2013-]\s*|\s+)(?=[\"\u201c(]?[A-Z\d])")
_ABSTRACT_WORDS = (50, 600)
_NO_BODY = (None, Category.ABSTRACT)
_NOTICE = re.compile(
    r"(?:\W*(?:\d|correspond|address|supported|funded|this work was|the authors? (?:thank|declare)|permission to"
    r"|citation|cite this|e-?mail|keywords|key words|index terms|jel|received|copyright))",
    re.IGNORECASE,
)

_MOST_AUTHORS = 60
_LONGEST_ADDRESS = 80  # characters, also of several addresses in one pair of braces
_FIRST_LINES = 4  # below the title: names farther down are not authors
_WORD = r"(?:[^\W\d_a-z][\w'\u2019]*(?:-\w[\w'\u2019]*)*|[^\W\d_a-z]\.(?:-?[^\W\d_a-z]\.)*)"
_PARTICLE = r"(?:van|von|der|den|de|del|della|di|da|dos|du|la|le|ter|ten|el|al|bin)"
_NAME = re.compile(rf"{_WORD}(?: (?:{_WORD}|{_PARTICLE})){{0,3}} {_WORD}(?:,? (?:Jr|Sr|I{{2,3}})\.?)?")
_MARKS = re.compile(r"[^\w\s.,;&'\u2019@-]+|[\d\u00b9\u00b2\u00b3\u2070-\u2079]+(?:\.\d+)*")
_NICKNAME = re.compile(r"\s\([^\W\d_]{2,20}\)\s")
_NO_NAME = re.compile(rf"\b(?:{'|'.join(PARAGRAPH_RULES['no_name'])})\b", re.IGNORECASE)
_LONE_FAMILY = re.compile(r"[^\W\d_a-z](?:\.|[^\W\d_a-z]?)")  # "J." or "JB" is not a family name

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_YEAR = r"((?:19|20)\d\d)\b"
_DATE = rf"(?:\d{{1,2}}(?:st|nd|rd|th)? )?(?:{_MONTH},? )?(?:\d{{1,2}},? )?{_YEAR}"
_YEAR_STATEMENTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bpublished(?: online)?(?: on)?:? {_DATE}",
        rf"(?:\u00a9|\(c\)|\bcopyright)(?: \u00a9| \(c\)| copyright)? ?(?:by )?{_YEAR}",
        rf"\barxiv ?: ?\S{{1,40}}(?: \[[\w.-]+\])? {_DATE}",
        rf"\bvol(?:ume|\.)? ?\d+[^\n]{{0,40}}?{_YEAR}|\b{_YEAR};? ?\d{{1,4}} ?[(:]|\b\d{{1,4}} \({_YEAR}\) \d",
        rf"\baccepted:? {_DATE}",
    )
)
# The date of a version, which may be of any later year.
_GENERATED = re.compile(rf"\bautomatically generated from \S+(?: \S{{1,12}})? on {_DATE}", re.IGNORECASE)


def mark_front_parts(pieces: Sequence[Piece], body: float) -> list[Piece]:
    """Mark the headings of abstract and contents, even in body type or directly before the first sentence.

    An abstract without any heading is given one if an introduction follows. Nothing is marked if no heading follows,
    since the whole paper would be its abstract.
    """
    named = [  # headings other than the abstract's
        piece
        for piece in pieces
        if piece.page < TITLE_PAGES and is_heading(piece, body) and not _LABEL.fullmatch(piece.text)
    ]
    if not any(NUMBERED.match(one.text) or standard_section(one.text) not in _NO_BODY for one in named):
        return list(pieces)
    marked: list[Piece] = []
    for index, piece in enumerate(pieces):
        if piece.page >= TITLE_PAGES or (is_heading(piece, body) and opening_category(piece.text) is not None):
            introduced = piece.page < TITLE_PAGES and opening_category(piece.text) is Category.INTRODUCTION
            if introduced and not any(
                before.part and opening_category(before.text) is Category.ABSTRACT for before in marked
            ):
                prose = [place for place, before in enumerate(marked) if _can_be_abstract(before, body)]
                if len(prose) == 1:
                    marked.insert(prose[0], replace(marked[prose[0]], text="Abstract", breaks=(), part=True))
            return [*marked, *pieces[index:]]
        label = _RUN_IN.match(piece.text)
        if _LABEL.fullmatch(piece.text) and not piece.table:
            marked.append(replace(piece, part=True))
        elif label and len(piece.text.split()) > _ABSTRACT_WORDS[0] and not piece.table:
            marked.append(replace(piece, text="Abstract", breaks=(), part=True))
            shorter = tuple(max(0, offset - label.end()) for offset in piece.breaks)
            marked.append(replace(piece, text=piece.text[label.end() :], breaks=shorter, bold=False))
        else:
            marked.append(piece)
    return marked


def _can_be_abstract(piece: Piece, body: float) -> bool:
    words = piece.text.split()
    if piece.table or piece.code or piece.size < SMALLER * SMALLER * body or is_boilerplate(piece.text):
        return False
    if not _ABSTRACT_WORDS[0] <= len(words) <= _ABSTRACT_WORDS[1] or "@" in piece.text or _NOTICE.match(piece.text):
        return False
    small = sum(word[:1].islower() for word in words)
    return small > 0.6 * len(words) and piece.text.rstrip()[-1] in ".!?\u201d"


def read_authors(pieces: Sequence[Piece], title: Piece | None, opens: Piece | None) -> tuple[str, ...]:
    """The names between title and abstract, in order; empty if there are none or some are ambiguous."""
    if title is None or opens is None:
        return ()
    begins, ends = (next((n for n, piece in enumerate(pieces) if piece is one), len(pieces)) for one in (title, opens))
    lead = [
        piece
        for piece in pieces[begins + 1 : ends]
        if not piece.table
        and piece.size < 0.9 * title.size
        and piece.text.casefold() not in title.text.casefold()
        and not is_boilerplate(piece.text)
        and len(piece.text.split()) > 1
    ]
    text = " ".join(piece.text for piece in pieces[: pieces.index(opens)])
    found: dict[str, None] = {}
    statements: list[str] = []  # the paragraphs that are lists of names, and the lines of all other paragraphs
    for piece in lead:
        lines = [line.text for line in piece.lines]
        read = [_names(line, "") for line in (*lines, " ".join(lines))]
        whole = all(map(_is_name, read[-1])) and not all(_is_name(name) for names in read[:-1] for name in names)
        statements += [" ".join(lines)] if whole else lines
    for place, statement in enumerate(statements):
        parts = _names(statement, text)
        known = sum(map(_is_name, parts))
        if 2 < known < len(parts) or (place >= _FIRST_LINES and not found):
            return ()  # a list that cannot be read completely, or names elsewhere than below the title
        if known == len(parts):
            found.update(dict.fromkeys(parts))
    return tuple(found) if len(found) <= _MOST_AUTHORS else ()


def confirm_authors(stated: str, first_page: str) -> tuple[str, ...]:
    """The authors from a PDF's metadata, if all are names whose family names occur on its first page."""
    names = _names(stated, "")
    words = set(re.findall(r"[\w'\u2019-]+", first_page))
    confirmed = all(_is_name(name) and name.split()[-1] in words for name in names)
    return tuple(names) if confirmed else ()


def _names(text: str, around: str) -> list[str]:
    text = _MARKS.sub(",", _NICKNAME.sub(" ", text))
    before = re.findall(r"(?<![\w.,{} -])[\w.,{} -]++(?=@)", around)
    addresses = " ".join(words[-_LONGEST_ADDRESS:] for words in before).lower()
    names: list[str] = []
    for part in map(one_line, re.split(r"[,;&]|\band\b|\s{3,}", text)):
        words = part.split()
        pairs = list(zip(words[::2], words[1::2], strict=False)) if len(words) >= 4 and len(words) % 2 == 0 else []
        lowered = [(given.lower(), family.lower()) for given, family in pairs]
        forms = [(given[:1] + family, given + family[:1], given, family) for given, family in lowered]
        if pairs and all(any(form in addresses for form in either) for either in forms):
            # Names side by side ("Ada Smith Jo Doe"), all of them confirmed by e-mail addresses on the page.
            names += [" ".join(pair) for pair in pairs]
        elif part.strip(" .\u00b7"):
            names.append(part)
    return names


def _is_name(text: str) -> bool:
    if _NAME.fullmatch(text) is None or _NO_NAME.search(text) or text == text.upper():
        return False
    words = text.split()
    if len(words[0]) == 1 or any(len(word) > 2 and word.isupper() and "." not in word for word in words):
        return False
    full = [word for word in words if word[0].isupper() and not word.endswith(".")]
    return 1 <= len(full) <= 3 and not _LONE_FAMILY.fullmatch(words[-1])


def read_year(first_page: str, lead: str) -> int | None:
    """The year of publication that the first page states, else the only year in its version and before the abstract."""
    printed = " ".join(first_page.split())
    for pattern in _YEAR_STATEMENTS:
        for match in pattern.finditer(printed):
            return int(next(filter(None, match.groups())))
    years = {*_GENERATED.findall(printed), *re.findall(rf"(?<![\w/.-]){_YEAR}(?![\w/-])", lead)}
    return int(years.pop()) if len(years) == 1 else None
