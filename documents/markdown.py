"""Parses a paper in markdown into sections and blocks with exact offsets into its text.

Nothing is rewritten: every span is an offset into the given text, so that `text[start:end]` is what the author wrote.
Headings inside code fences, comments and formulas do not count (half of the `#` lines of a Quarto paper are comments in
R).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

from ..text.sentences import trim_span
from ..text.words import one_line
from .blocks import parse_blocks
from .categories import SectionClass, classify_section, is_reviewer_letter, standard_section
from .front_matter import FrontMatter, read_front_matter
from .paragraph_kinds import is_boilerplate
from .types import Category, Section

BlockKind = Literal["prose", "list", "table", "code", "math", "html", "hidden"]
Span = tuple[BlockKind, int, int]  # a block not yet assigned to a section: kind, start, end

_KINDS: dict[str, BlockKind] = {
    "paragraph_open": "prose",
    "blockquote_open": "prose",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
    "display_math": "math",
    "html_block": "html",
}
_COMMENT = re.compile(r"\s*<!--.*?-->\s*", re.DOTALL)
_ATTRIBUTES = re.compile(r"(?<!\s)\s*+\{[^{}]*\}\s*$")
# Code that the published paper hides: Quarto and R Markdown cells with echo or include off.
_CELL = re.compile(r"\{[^}]*\}")
_HIDDEN_CELL = re.compile(r"\b(?:include|echo)\s*=\s*F(?:ALSE)?\b|^#\|\s*(?:include|echo):\s*false", re.M)
_HIDE_ALL = re.compile(r"opts_chunk\$set\([^)]{0,1000}\becho\s*=\s*F(?:ALSE)?\b")
# In a list of annotated references, each heading is another paper's title with only its citation below.
_LONE_CITATION = re.compile(r"\s*\[@[^\[\]]+\][ \t]*(?:\r?\n|$)")
# Sections that contain only code: a program in an appendix, the setup of a notebook.
_CODE_SHARE = 0.7
_APPENDED_CODE_SHARE = 0.3
_PROSE_ENOUGH = 400  # characters
_PART_WORDS = 3
_ABSTRACT_WORDS = 600
# Titles that programs generate for web pages without one.
_FILE_NAME = re.compile(r"(?=.*[\d_.-])\w++(?:[-.]\w++)*|(?i:index|main|paper|article|manuscript|document|untitled)")
_BODY = frozenset({Category.INTRODUCTION, Category.METHOD, Category.EVALUATION})


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list, table, formula or code block; `section` is the index of its section.

    "hidden" blocks are invisible to a reader of the paper: comments, and hidden code cells.
    """

    kind: BlockKind
    start: int
    end: int
    section: int


@dataclass(frozen=True, slots=True)
class ParsedPaper:
    """The structure of one paper; offsets refer to `text`.

    `page_starts` holds the offset at which each page begins, empty for a source without pages; `title_source` names
    where the title was found if not in the front matter or a heading; `ocr_pages` are the pages that OCR read.
    """

    text: str
    title: str
    front_matter: FrontMatter
    sections: tuple[Section, ...]
    blocks: tuple[Block, ...]
    page_starts: tuple[int, ...] = ()
    title_source: str = ""
    ocr_pages: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()

    def page_at(self, offset: int) -> int | None:
        """The page, from 1, of the character at `offset`; None if there are no pages."""
        return bisect_right(self.page_starts, offset) or None

    def section_blocks(self, section: Section) -> list[Block]:
        """The blocks under a heading, up to the next heading of any level."""
        first = bisect_left(self.blocks, section.index, key=lambda block: block.section)
        stop = bisect_right(self.blocks, section.index, first, key=lambda block: block.section)
        return list(self.blocks[first:stop])

    def abstract(self) -> str:
        """The abstract: from the front matter, else from the sections of that category, as plain paragraphs.

        It ends with the paragraph that exceeds 600 words; otherwise a paper without a heading after its abstract would
        be all abstract.
        """
        if self.front_matter.abstract:
            return self.front_matter.abstract
        parts = (
            self.text[block.start : block.end].strip()
            for section in self.sections
            if section.searchable and section.category is Category.ABSTRACT
            for block in self.section_blocks(section)
            if block.kind == "prose"
        )
        taken: list[str] = []
        words = 0
        for part in parts:
            if words > _ABSTRACT_WORDS:
                break
            if not part.startswith("![") and not is_boilerplate(part):
                taken.append(part)
                words += len(part.split())
        return "\n\n".join(taken)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading as written, with the offsets of its line and of the text below it."""

    title: str
    level: int
    line_start: int
    body_start: int


def parse_markdown(text: str) -> ParsedPaper:
    """Parse the structure of a paper; any text is valid, and one without headings is a single section."""
    front = FrontMatter()
    headings: list[Heading] = []
    loose: list[Span] = []
    hide_all = bool(_HIDE_ALL.search(text))
    for block in parse_blocks(text, "paper"):
        if block.kind == "front_matter":
            front = read_front_matter(block.token.content)
            hide_all = hide_all or front.hides_code
        elif block.words is not None:
            shown = "".join(
                " " if child.type in {"softbreak", "hardbreak"} else child.content
                for child in block.words.children or []
                if child.type != "html_inline"
            )
            title = one_line(_ATTRIBUTES.sub("", shown or block.words.content))
            headings.append(Heading(title, int(block.token.tag[1]), block.start, block.end))
        elif block.kind in _KINDS:
            left, right = trim_span(text, block.start, block.end)
            kind, raw = _KINDS[block.kind], text[left:right]
            is_cell = kind == "code" and _CELL.match(block.token.info.strip())
            commented = kind in {"html", "prose"} and _COMMENT.fullmatch(raw)
            hidden = commented or (is_cell and (hide_all or _HIDDEN_CELL.search(raw)))
            if right > left:
                loose.append(("hidden" if hidden else kind, left, right))
    if len(headings) <= 1:  # at most the title is marked as a heading
        prose = [text[start:end] if kind == "prose" else "" for kind, start, end in loose]
        unmarked = dict(find_unmarked_headings(prose))
        found = [Heading(item.title, item.level, *loose[index][1:]) for index, item in unmarked.items()]
        headings = sorted([*headings, *found], key=lambda heading: heading.line_start)
        loose = [block for index, block in enumerate(loose) if index not in unmarked]
    title, has_title_heading = _title(text, front, headings, loose)
    return assemble(text, title, front, headings, loose, has_title_heading=has_title_heading)


def assemble(
    text: str, title: str, front: FrontMatter, headings: list[Heading], loose: list[Span], *, has_title_heading: bool
) -> ParsedPaper:
    """Assemble a paper from its headings and blocks; `has_title_heading` means that the first heading is the title."""
    sections = tuple(_sections(text, title, has_title_heading, headings, loose))
    ends = [section.end for section in sections[:-1]]
    blocks = (
        Block(kind, start, end, bisect_right(ends, start)) for kind, start, end in sorted(loose, key=itemgetter(1))
    )
    return ParsedPaper(text, title, front, sections, tuple(blocks))


def _title(text: str, front: FrontMatter, headings: list[Heading], loose: list[Span]) -> tuple[str, bool]:
    """The paper's title, and whether the first heading is that title rather than a section."""
    if not headings:
        return front.title, False
    first = headings[0]
    opens = not any(start < first.line_start for kind, start, _ in loose if kind != "hidden")
    # "Evaluation of Looms in Practice" is a title, "Evaluation" a section.
    is_part = standard_section(first.title) is not None and len(first.title.split()) <= _PART_WORDS
    is_title = first.level == 1 and opens and bool(first.title) and not is_part
    if front.title and not (is_title and _FILE_NAME.fullmatch(front.title) and " " in first.title):
        return front.title, is_title and first.title.casefold() == front.title.casefold()
    return (first.title, True) if is_title else ("", False)


def _sections(
    text: str, title: str, has_title_heading: bool, headings: list[Heading], loose: list[Span]
) -> Iterator[Section]:
    if not headings or any(start < headings[0].line_start for _, start, _ in loose):
        lead_start = min((start for _, start, _ in loose), default=0)
        headings = [Heading(title, 1, lead_start, lead_start), *headings]
        has_title_heading = True
    above: list[tuple[Heading, SectionClass]] = []
    in_letters = body_begun = False
    for index, heading in enumerate(headings):
        end = headings[index + 1].line_start if index + 1 < len(headings) else len(text)
        if index == 0 and has_title_heading:
            lead = Category.INTRODUCTION if len(headings) > 1 else Category.OTHER
            yield Section(0, heading.title, "", heading.level, lead, heading.body_start, end)
            continue
        while above and above[-1][0].level >= heading.level:
            above.pop()
        in_letters = in_letters or is_reviewer_letter(heading.title)
        has_table = any(kind == "table" for kind, *_ in _between(loose, heading.body_start, end))
        over = [kept for _, kept in above]
        placement = classify_section(heading.title, heading.level, over, body_begun=body_begun, has_table=has_table)
        hidden = in_letters or _is_no_prose(text, heading.body_start, end, loose, placement.appended)
        if hidden:
            placement = SectionClass(Category.OTHER, searchable=False)
        parent = above[-1][0].title if above else ""
        body_begun = body_begun or placement.category in _BODY
        # A code-only section is hidden itself, but not the prose in its subsections.
        above.append((heading, placement if not hidden or in_letters else SectionClass(Category.OTHER)))
        place = (placement.category, heading.body_start, end, placement.searchable)
        yield Section(index, heading.title, parent, heading.level, *place)


def _is_no_prose(text: str, start: int, end: int, loose: list[Span], appended: bool) -> bool:
    """Whether a section is an annotated reference, or code with hardly any prose."""
    if _LONE_CITATION.match(text, start, end):
        return True
    inside = [(kind, right - left) for kind, left, right in _between(loose, start, end) if kind != "hidden"]
    code = sum(size for kind, size in inside if kind == "code")
    prose = sum(size for kind, size in inside if kind in {"prose", "list"})
    total = sum(size for _, size in inside)
    if appended:
        return code > _APPENDED_CODE_SHARE * total > 0
    return code > _CODE_SHARE * total and prose < _PROSE_ENOUGH


def _between(loose: list[Span], start: int, end: int) -> list[Span]:
    first = bisect_left(loose, start, key=itemgetter(1))
    return loose[first : bisect_left(loose, end, first, key=itemgetter(1))]


_MOST_WORDS = 12
_MOST_LETTERS = 100
_MOST_CHARACTERS = 1000
_LEAST_LETTERS = 2
_LEAST_SURE = 2
_DEEPEST = 6
_BOLD = re.compile(r"(\*\*\*|\*\*|__)(?=\S)([^*]+?)(?<=\S)\1")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2})*)\.?\s+(?=[^\W\d_])")
_ROMAN = re.compile(r"([IVX]{1,5})\.\s+(?=[^\W\d_])")
_CAPTION = re.compile(r"(?:fig(?:ure|\.)?|table|box|scheme|algorithm)\s*\w?\d", re.IGNORECASE)
_NO_WORDS = re.compile(r"https?://|[<>=$|]|^!?\[")
_SENTENCE_END = re.compile(r"[.;:,!?]$")


@dataclass(frozen=True, slots=True)
class PlainHeading:
    """The words of a heading and its level; `sure` if they are numbered or name a standard part of a paper."""

    title: str
    level: int
    sure: bool


def parse_heading(line: str) -> PlainHeading | None:
    """Parse a separate line as a heading; None if it is text."""
    if len(line) > _MOST_CHARACTERS:
        return None
    bold = _BOLD.fullmatch(line.strip())
    title = " ".join((bold.group(2) if bold else line).split())
    letters = [character for character in title if character.isalpha()]
    if len(title.split()) > _MOST_WORDS or not _LEAST_LETTERS <= len(letters) <= _MOST_LETTERS:
        return None
    if _NO_WORDS.search(title) or _CAPTION.match(title) or title.endswith(":") or "**" in title:
        return None
    number = _NUMBERED.match(title) or _ROMAN.match(title)
    rest = title[number.end() :] if number else title
    sure = number is not None or is_standard_heading(rest)
    level = min(_DEEPEST, 2 + number.group(1).count(".")) if number else 2
    if bold:
        return PlainHeading(title, level, sure)
    capitals = title == title.upper() != title.lower() and len(letters) > 2 * _LEAST_LETTERS
    if _SENTENCE_END.search(title) or not (sure or capitals) or (number and rest[0].islower()):
        return None
    return PlainHeading(title, level, sure)


def is_standard_heading(title: str) -> bool:
    """Whether a title names a usual part of a paper, including reference lists."""
    return standard_section(title) is not None or not classify_section(title, 1).searchable


def find_unmarked_headings(paragraphs: Sequence[str]) -> Iterator[tuple[int, PlainHeading]]:
    """The headings among paragraphs, by index; none unless at least two are sure.

    The first paragraph is the title (level 1) unless it names a standard part.
    """
    found = [
        (index, heading)
        for index, text in enumerate(paragraphs)
        if "\n" not in text.strip() and (heading := parse_heading(text)) is not None
    ]
    if sum(heading.sure for _, heading in found) < _LEAST_SURE:
        return
    for index, heading in found:
        is_title = index == 0 and not heading.sure
        yield index, PlainHeading(heading.title, 1, sure=False) if is_title else heading
