"""Splits a user's text into blocks: paragraphs, and lists, tables, headings and code kept verbatim.

A field of an experiment is often markdown. Paragraphs may be split into sentences; in everything else line breaks are
significant and kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.token import Token

from ..text.normalize import one_line

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
    tokens = [token for token in _parser().parse("\n".join(lines)) if token.level == 0 and token.map]
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
def _parser() -> MarkdownIt:
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
