"""Parses the block structure of papers, passages and users' texts in markdown, with markdown-it.

All share one grammar, in which display formulas are blocks: without that rule, a line of `=` or `-` inside a formula
would turn the line above into a heading. A passage may begin and end anywhere in a paper, so a table in it may lack its
header, an indented line is prose, and each list item is a block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

from ..text.words import one_line
from .plain_text import TABLE_RULE

MarkdownDialect = Literal["paper", "passage", "field"]
FieldKind = Literal["paragraph", "heading", "kept"]
_Rule = Callable[[StateBlock, int, int, bool], bool]

LIST_ITEM: Final = re.compile(
    r"[ \t]*(?:\\item\b|\d{1,3}[.)][ \t]|\\?\[\d{1,3}\\?\][ \t]|[-*+\u2022][ \t]|\[[^\[\]\n]{1,200}\]:)"
)
DEEP_HEADING: Final = re.compile(r"[ \t]{0,3}#{7,12}[ \t]+")
_LINE_END = re.compile(r"\r\n?|\n")
# A formula not closed within this many lines is treated as stray dollar signs.
_MAX_MATH_LINES: Final = 200
_MAX_SETEXT = 200  # characters
_ENVIRONMENT = re.compile(r"\\begin\{([a-zA-Z]{1,20}\*?)\}")
_DOLLAR_END = re.compile(r"\$\$\s*+(?:\{[^{}]*+\}|\([\w:.-]++\))?\s*+[.,;:]?\s*+$")
_NO_MATH = re.compile(r"#{1,6} |```|~~~|:::")
_SETEXT = re.compile(r"\s*(?:=+|-+)\s*")
_UNDERLINE = re.compile(r"[ \t]*+(?:=++|-++|(?:[*_-][ \t]*+){3,}+)[ \t]*+")
_LAYOUT_COMMAND = re.compile(
    r"[ \t]*\\(?:(?:sub){0,2}section|chapter|(?:sub)?paragraph|title)\*?\{[^{}]{0,300}\}"
    r"(?:\\label\{[^{}]{0,100}\})?[ \t]*$"
    r"|[ \t]*\\(?:begin|end)\{(?:itemize|enumerate|description|quote|figure|table|center)\*?\}.{0,80}$"
    r"|[ \t]*\\(?:centering|includegraphics|label|maketitle|newpage|clearpage|bigskip|vspace)\b.{0,200}$"
    r"|[ \t]*:::"
)
_INTERRUPTING = re.compile(
    r"(?<![ \t])[ \t]*+(?:\$\$|<table|<!--|\\begin\{[a-zA-Z]{1,20}\*?\})|[ \t]{0,3}(?:#{1,6}(?:[ \t]|$)|```|~~~)"
)
_PASSAGE_RULES: Final = ("fence", "heading", "display_math", "comment", "html_table", "layout", "rows", "underline")
_ATX: Final = re.compile(r"[ \t]*#{1,6}(?P<words>(?:[ \t].*)?)")
_LOWEST: Final = 6
_BULLET: Final = re.compile(r"(?m)^([ \t]*)[\u2022\u2023\u25aa\u25e6\u25cf][ \t]+")
# "1. Train. 2. Fit." on one line is a sentence with numbers, not a list.
_INLINE_STEPS: Final = re.compile(r"[ \t]*\d{1,3}[.)][ \t].*[ \t]\d{1,3}[.)][ \t]")


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A top-level block, the lines `text[start:end]`, of its token's `kind`; `words` are the heading's inline token."""

    kind: str
    start: int
    end: int
    token: Token
    words: Token | None


@dataclass(frozen=True, slots=True)
class FieldBlock:
    """A block of a user's text: a paragraph on one line, a heading at its shifted level, or anything else verbatim."""

    kind: FieldKind
    text: str


def parse_blocks(text: str, dialect: MarkdownDialect) -> Iterator[MarkdownBlock]:
    """The top-level blocks in order; inline content only in headings of papers, which saves two thirds of the time."""
    lines = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
    tokens = _parser(dialect).parse(text)
    for number, token in enumerate(tokens):
        if token.level == 0 and token.map is not None:
            start, end = lines[token.map[0]], lines[min(token.map[1], len(lines) - 1)]
            words = tokens[number + 1] if token.type == "heading_open" else None
            yield MarkdownBlock(token.type, start, end, token, words)


@lru_cache(maxsize=3)
def _parser(dialect: MarkdownDialect) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 40, "html": dialect != "field"}).enable("table")
    ruler = parser.block.ruler
    if dialect == "field":
        # Indented lines are wrapped prose, and a line such as "[a]: b" must not vanish as a link definition.
        return parser.disable(["code", "reference", "html_block", "linkify", "inline"], ignoreInvalid=True)
    ruler.before("fence", "display_math", _display_math, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    if dialect == "paper":
        setext = next(rule.fn for rule in ruler.__rules__ if rule.name == "lheading")
        ruler.at("lheading", _one_line_heading(setext))
        parser.core.ruler.at("inline", _parse_headings)
        return parser.use(front_matter_plugin)
    ruler.before("paragraph", "comment", _closed_html("<!--", "-->"))
    ruler.before("paragraph", "html_table", _closed_html("<table", "</table>"))
    ruler.before("display_math", "layout", _line_rule("layout", lambda line: bool(_LAYOUT_COMMAND.match(line))))
    ruler.before("paragraph", "rows", _line_rule("rows", _is_row, many=True))
    ruler.before("paragraph", "underline", _line_rule("underline", lambda line: bool(_UNDERLINE.fullmatch(line))))
    ruler.at("paragraph", _passage_paragraph)
    ruler.enableOnly([*_PASSAGE_RULES, "paragraph"])
    return parser.disable("inline")


def _one_line_heading(setext: _Rule) -> _Rule:
    """As in pandoc, only a single short line above the rule is a heading, not a paragraph above "---"."""

    def heading(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if start + 1 >= end or not _SETEXT.fullmatch(_line(state, start + 1)):
            return False
        above = _line(state, start)
        if len(above) > _MAX_SETEXT or above.lstrip().startswith(("|", ":::", "$", "!", "#|")):
            return False
        return setext(state, start, end, silent)

    return heading


def _parse_headings(state: StateCore) -> None:
    """Parse inline content of headings after all blocks, so that they can use any link definition."""
    for opening, token in pairwise(state.tokens):
        if opening.type == "heading_open":
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _add_block(state: StateBlock, kind: str, start: int, stop: int, info: str = "") -> bool:
    state.line = stop
    token = state.push(kind, "", 0)
    token.map, token.block, token.info = [start, stop], True, info
    return True


def _display_math(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`$$ ... $$`, `\\[ ... \\]` and `\\begin{equation} ... \\end{equation}` that begin a line."""
    begin = state.bMarks[start] + state.tShift[start]
    if state.src[begin : begin + 1] not in {"$", "\\"} or state.is_code_block(start):
        return False
    first = _line(state, start)
    environment = _ENVIRONMENT.match(first)
    if environment:
        closing, behind = f"\\end{{{environment[1]}}}", first
    elif first.startswith("$$"):
        closing, behind = "$$", first[2:]
        if closing in behind and not _DOLLAR_END.search(first):
            return False  # "$$x$$ is the ..." is a formula inside a sentence
    elif first.rstrip() in {"\\[", "\\\\["}:
        closing, behind = "\\]", ""
    else:
        return False
    for number in range(start, min(end, start + _MAX_MATH_LINES)):
        line = behind if number == start else _line(state, number)
        if closing in line:
            return silent or _add_block(state, "display_math", start, number + 1, environment[1] if environment else "")
        if number > start and _NO_MATH.match(line):
            return False
    return False


def _closed_html(opening: str, closing: str) -> _Rule:
    """A comment or table in HTML; without its end it is a paragraph."""

    def closed(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if not _line(state, start).lower().startswith(opening) or closing in state.env:
            return False
        last = next((number for number in range(start, end) if closing in _line(state, number)), None)
        if last is None:
            state.env[closing] = "missing"  # searched for only once, to keep the time linear
            return False
        return silent or _add_block(state, "comment" if opening == "<!--" else "rows", start, last + 1)

    return closed


def _line_rule(kind: str, matches: Callable[[str], bool], *, many: bool = False) -> _Rule:
    """A block of one line, or of `many` that match."""

    def lines(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        stop = start
        while stop < end and (many or stop == start) and matches(_line(state, stop).rstrip()):
            stop += 1
        return stop > start and (silent or _add_block(state, kind, start, stop))

    return lines


def _is_row(line: str) -> bool:
    if line.startswith("|"):
        return line.count("|") > 1
    return (line.startswith(("+-", "+=", "+:")) or "|" in line) and TABLE_RULE.fullmatch(line) is not None


def _passage_paragraph(state: StateBlock, start: int, end: int, _silent: bool) -> bool:
    for stop in range(start + 1, end):
        line = state.src[state.bMarks[stop] : state.eMarks[stop]]
        bare, interrupting = line.strip(), (LIST_ITEM, _INTERRUPTING, DEEP_HEADING, _LAYOUT_COMMAND)
        if not bare or _is_row(bare) or any(one.match(line) for one in interrupting) or _UNDERLINE.fullmatch(bare):
            return _add_block(state, "paragraph_open", start, stop)
    return _add_block(state, "paragraph_open", start, end)


@lru_cache(maxsize=128)
def field_blocks(text: str, *, top: int = 2) -> tuple[FieldBlock, ...]:
    """The blocks of a user's text, highest headings at level `top`; lists, tables and code keep line breaks."""
    lines = _BULLET.sub(r"\1- ", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    found = list(parse_blocks("\n".join(lines), "field"))
    levels = [int(block.token.tag[1]) for block in found if block.kind == "heading_open"]
    down = top - min(levels, default=top)
    return tuple(made for block in found for made in _as_field_blocks(block.token, lines, down) if made.text)


def _as_field_blocks(token: Token, lines: list[str], down: int) -> Iterator[FieldBlock]:
    first, behind = token.map or (0, 0)
    given = [line.rstrip() for line in lines[first:behind]]
    while given and not given[-1]:
        given.pop()
    if token.type == "heading_open":
        atx = _ATX.fullmatch(given[0]) if len(given) == 1 else None
        words = atx["words"].strip().rstrip("#").rstrip() if atx else " ".join(given[:-1])
        yield FieldBlock("heading", f"{'#' * min(_LOWEST, int(token.tag[1]) + down)} {one_line(words)}")
    elif token.type == "table_open":
        # Markdown parses a line directly below a table as a row, but a line without a bar was not meant as one.
        rows = next((n for n, line in enumerate(given) if "|" not in line), len(given))
        yield FieldBlock("kept", "\n".join(given[:rows]))
        yield FieldBlock("paragraph", one_line(" ".join(given[rows:])))
    elif token.type != "paragraph_open" and not (len(given) == 1 and _INLINE_STEPS.match(given[0])):
        yield FieldBlock("kept", "\n".join(given))
    elif len(given) > 1 and all(line.lstrip().startswith("|") for line in given):
        rule = "|" + "---|" * max(1, given[0].strip().strip("|").count("|") + 1)
        yield FieldBlock("kept", "\n".join([given[0], rule, *given[1:]]))
    else:
        yield FieldBlock("paragraph", one_line(" ".join(given)))
