"""Parses the block structure of markdown with markdown-it: papers, and texts of users."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

from ..text.words import one_line

# A formula not closed within this many lines is treated as stray dollar signs.
_MAX_MATH_LINES: Final = 200
_ENVIRONMENT = re.compile(r"\\begin\{([a-zA-Z]+\*?)\}")
_DOLLAR_END = re.compile(r"\$\$\s*+(?:\{[^{}]*+\}|\([\w:.-]++\))?\s*+[.,;:]?\s*+$")
_NO_MATH = re.compile(r"#{1,6} |```|~~~|:::")
_MAX_SETEXT = 200  # characters


def markdown_tokens(text: str) -> list[Token]:
    """Block tokens of `text`; `token.map` holds lines as ended by "\\n", "\\r\\n" or "\\r".

    Inline content is parsed only in headings: elsewhere it is not needed and would take two thirds of the time.
    """
    return _parser().parse(text)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 40}).enable("table").use(front_matter_plugin)
    parser.block.ruler.before(
        "fence", "display_math", _display_math, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    lheading = next(rule.fn for rule in parser.block.ruler.__rules__ if rule.name == "lheading")

    def one_line_heading(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        # As in pandoc, only a single short line above the rule is a heading, not a paragraph above "---".
        if start + 1 >= end or not re.fullmatch(r"\s*(?:=+|-+)\s*", _line(state, start + 1)):
            return False
        above = _line(state, start)
        if len(above) > _MAX_SETEXT or above.lstrip().startswith(("|", ":::", "$", "!", "#|")):
            return False
        return bool(lheading(state, start, end, silent))

    parser.block.ruler.at("lheading", one_line_heading)
    parser.core.ruler.at("inline", _words_of_headings)
    return parser


def _words_of_headings(state: StateCore) -> None:
    """Parse inline content of headings after all blocks, so that they can use any link definition."""
    for opening, token in pairwise(state.tokens):
        if opening.type == "heading_open":
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _display_math(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """`$$ ... $$`, `\\[ ... \\]` and `\\begin{equation} ... \\end{equation}` that begin a line."""
    begin = state.bMarks[start] + state.tShift[start]
    if state.src[begin : begin + 1] not in {"$", "\\"} or state.is_code_block(start):
        return False
    first = _line(state, start)
    last = _math_end(state, first, start, end)
    if last is None:
        return False
    if silent:
        return True
    state.line = last + 1
    token = state.push("display_math", "", 0)
    token.map = [start, state.line]
    token.block = True
    return True


def _math_end(state: StateBlock, first: str, start: int, end: int) -> int | None:
    """The last line of the formula that begins on `start`; None if it is not a formula."""
    environment = _ENVIRONMENT.match(first)
    if environment:
        closing = f"\\end{{{environment.group(1)}}}"
    elif first.startswith("$$"):
        closing = "$$"
        if closing in first[2:]:
            # "$$x$$ is the ..." is a formula inside a sentence.
            return start if _DOLLAR_END.search(first) else None
    elif first.rstrip() == "\\[":
        closing = "\\]"
    else:
        return None
    if environment and closing in first:
        return start
    for number in range(start + 1, min(end, start + _MAX_MATH_LINES)):
        line = _line(state, number)
        if closing in line:
            return number
        if _NO_MATH.match(line):
            return None
    return None


BlockKind = Literal["paragraph", "heading", "kept"]

_ATX: Final = re.compile(r"[ \t]*#{1,6}(?P<words>(?:[ \t].*)?)")
_LOWEST: Final = 6
_BULLET: Final = re.compile(r"(?m)^([ \t]*)[\u2022\u2023\u25aa\u25e6\u25cf][ \t]+")
# "1. Train. 2. Fit." on one line is a sentence with numbers, not a list.
_INLINE_STEPS: Final = re.compile(r"[ \t]*\d{1,3}[.)][ \t].*[ \t]\d{1,3}[.)][ \t]")


@dataclass(frozen=True, slots=True)
class FieldBlock:
    """A block of a text: a paragraph on one line, a heading at its shifted level, or anything else verbatim."""

    kind: BlockKind
    text: str


def blocks(text: str, *, top: int = 2) -> tuple[FieldBlock, ...]:
    """The blocks of a text in order, with its highest headings at level `top`."""
    return _blocks(text, top)


@lru_cache(maxsize=128)
def _blocks(text: str, top: int) -> tuple[FieldBlock, ...]:
    lines = _BULLET.sub(r"\1- ", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    tokens = [token for token in _field_parser().parse("\n".join(lines)) if token.level == 0 and token.map]
    levels = [int(token.tag[1]) for token in tokens if token.type == "heading_open"]
    down = top - min(levels, default=top)
    return tuple(block for token in tokens for block in _made(token, lines, down) if block.text)


def _made(token: Token, lines: list[str], down: int) -> Iterator[FieldBlock]:
    first, behind = token.map or (0, 0)
    written = [line.rstrip() for line in lines[first:behind]]
    while written and not written[-1]:
        written.pop()
    if token.type == "heading_open":
        atx = _ATX.fullmatch(written[0]) if len(written) == 1 else None
        words = atx["words"].strip().rstrip("#").rstrip() if atx else " ".join(written[:-1])
        yield FieldBlock("heading", f"{'#' * min(_LOWEST, int(token.tag[1]) + down)} {one_line(words)}")
    elif token.type == "table_open":
        # Markdown parses a line directly below a table as a row, but a line without a bar was not meant as one.
        rows = next((n for n, line in enumerate(written) if "|" not in line), len(written))
        yield FieldBlock("kept", "\n".join(written[:rows]))
        yield FieldBlock("paragraph", one_line(" ".join(written[rows:])))
    elif token.type != "paragraph_open" and not (len(written) == 1 and _INLINE_STEPS.match(written[0])):
        yield FieldBlock("kept", "\n".join(written))
    elif len(written) > 1 and all(line.lstrip().startswith("|") for line in written):
        rule = "|" + "---|" * max(1, written[0].strip().strip("|").count("|") + 1)
        yield FieldBlock("kept", "\n".join([written[0], rule, *written[1:]]))
    else:
        yield FieldBlock("paragraph", one_line(" ".join(written)))


@lru_cache(maxsize=1)
def _field_parser() -> MarkdownIt:
    # Indented lines are wrapped prose, and a line such as "[a]: b" must not vanish as a link definition.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.block.ruler.at("paragraph", _outer_paragraph)
    return parser.disable(["code", "reference", "html_block", "linkify", "inline"], ignoreInvalid=True)


def _outer_paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Paragraph rule that skips paragraphs inside lists and quotations, whose content is not needed."""
    before = len(state.tokens)
    found = paragraph(state, start, end, silent)
    if state.level:
        del state.tokens[before:]
    return found
