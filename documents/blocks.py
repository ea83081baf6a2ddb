"""Parses the block structure of markdown with markdown-it, treating display formulas as blocks.

Without that rule, a line of `=` or `-` inside a formula would turn the line above into a heading.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

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
