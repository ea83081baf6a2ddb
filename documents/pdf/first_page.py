"""Reads abstract, authors and year from a PDF's first pages; none if in doubt, since a wrong author is worse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ...text.words import one_line
from ..categories import standard_section
from ..paragraph_kinds import PARAGRAPH_RULES, is_boilerplate
from ..types import Category
from .headings import NUMBERED, SMALLER, TITLE_PAGES, Piece, is_heading, opening_category

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
        rf"\bautomatically generated from \S+(?: \S{{1,12}})? on {_DATE}",
        rf"\bvol(?:ume|\.)? ?\d+[^\n]{{0,40}}?{_YEAR}|\b{_YEAR};? ?\d{{1,4}} ?[(:]|\b\d{{1,4}} \({_YEAR}\) \d",
        rf"\baccepted:? {_DATE}",
    )
)


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
    addresses = " ".join(re.findall(r"[\w.,{} -]{1,80}(?=@)", around)).lower()
    names: list[str] = []
    for part in map(one_line, re.split(r"[,;&]|\band\b|\s{3,}", text)):
        words = part.split()
        pairs = list(zip(words[::2], words[1::2], strict=False)) if len(words) >= 4 and len(words) % 2 == 0 else []
        lowered = [(given.lower(), family.lower()) for given, family in pairs]
        forms = [(given[:1] + family, given + family[:1], given, family) for given, family in lowered]
        if pairs and all(any(form in addresses for form in either) for either in forms):
            # Names side by side ("Ada Smith Jo Doe"), of which e-mail addresses on the page confirm all.
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
    """The year of publication that the first page states, else the only year before the abstract."""
    for pattern in _YEAR_STATEMENTS:
        for match in pattern.finditer(" ".join(first_page.split())):
            return int(next(filter(None, match.groups())))
    years = set(re.findall(rf"(?<![\w/.-]){_YEAR}(?![\w/-])", lead))
    return int(years.pop()) if len(years) == 1 else None
