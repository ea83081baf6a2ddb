"""Folds a text into the form that a reader sees, so that detection is not fooled by markup or Unicode variants.

`[**12**]`, `［12］`, `&#91;12&#93;`, `\\[12\\]` and `[1<b></b>2]` all read as [12]. Detection works on the folded view,
without such decoration; every character of the view is mapped to its position in the text, so that matches can be
replaced there. Folding never changes the text itself.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

_PIECES = r"""
      (?P<plain>[A-Za-z0-9 .,;:!?()\[\]{}"'/=+%$\#@^|>\n-]+)
    | (?P<comment><!--.*?-->)
    | (?P<sup></?sup\s*>)
    | (?P<tag></?[a-zA-Z][a-zA-Z0-9-]*(?:\s[^<>]*)?/?>)
    | (?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});)
    | \\(?P<escaped>[!-/:-@\[-`{-~])
    | (?P<mark>\*+|`+|~~)
    | (?P<char>.)
    """
_PIECE = re.compile(_PIECES, re.VERBOSE | re.DOTALL)  # always ends with: -->
_PIECE_OUTSIDE = re.compile(_PIECES.replace("<!--.*?-->", "(?!)"), re.VERBOSE | re.DOTALL)
_FENCE = re.compile(r"(?m)^(?:```|~~~)")
_FENCE_END = re.compile(r"(?m)^(?:```|~~~)[ \t]*$")
_BACKTICKS_OR_BLANK = re.compile(r"`+|\n[ \t]*\n")

# Brackets that NFKC does not normalise, and letters that look like the E of a marker.
_LOOKALIKES = str.maketrans(
    "【〔〖〚⟦❲⁅⦋⟬】〕〗〛⟧❳⁆⦌⟭❨❪⟮⦅❩❫⟯⦆\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\u2018\u2019\u02bc",
    "[[[[[[[[[]]]]]]]]](((())))--------'''",
)
# Blank or invisible characters, though Unicode classifies some of them as letters.
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")


@dataclass(frozen=True, slots=True)
class Folded:
    """The folded `text`; `starts`, `ends`, and the spans `hidden` (comments, tags) and `code` refer to the original."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    hidden: tuple[tuple[int, int], ...]
    code: tuple[tuple[int, int], ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span of `text[start:end]` (not empty) in the original."""
        return self.starts[start], self.ends[end - 1]

    def in_code(self, position: int) -> bool:
        """Whether a position of the original lies in code."""
        index = bisect_right(self.code, position, key=lambda span: span[0]) - 1
        return index >= 0 and position < self.code[index][1]


@lru_cache(maxsize=32)
def fold(text: str) -> Folded:
    shown: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    hidden: list[tuple[int, int]] = []
    behind = text.rfind("-->") + len("-->") if "-->" in text else 0  # no comment is searched for after the last end
    for piece in chain(_PIECE.finditer(text, 0, behind), _PIECE_OUTSIDE.finditer(text, behind)):
        start, end = piece.span()
        if piece["plain"]:
            shown.append(piece[0])
            starts.extend(range(start, end))
            ends.extend(range(start + 1, end + 1))
            continue
        if piece["comment"] or piece["tag"]:
            hidden.append((start, end))
            continue
        seen = _seen(piece, text)
        shown.append(seen)
        starts += [start] * len(seen)
        ends += [end] * len(seen)
    return Folded("".join(shown), tuple(starts), tuple(ends), tuple(hidden), tuple(_code(text)))


def _code(text: str) -> Iterator[tuple[int, int]]:
    """Spans of code as in CommonMark: fenced blocks, and pairs of equal backtick runs within a paragraph."""
    closing = [match.span() for match in _FENCE_END.finditer(text)]
    starts = [start for start, _ in closing]
    done = 0
    for fence in _FENCE.finditer(text):
        index = bisect_right(starts, fence.start())
        if fence.start() < done or index == len(closing):
            continue
        yield from _code_in_lines(text, done, fence.start())
        yield fence.start(), closing[index][1]
        done = closing[index][1]
    yield from _code_in_lines(text, done, len(text))


def _code_in_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Pairs of backtick runs of equal length, each with the next in the paragraph; unpaired runs are not code."""
    runs = list(_BACKTICKS_OR_BLANK.finditer(text, start, end))
    following: dict[int, int] = {}  # the nearest following run, by length
    closes: list[int | None] = [None] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        length = len(runs[index][0])
        if runs[index][0][0] == "`":
            closes[index] = following.get(length)
            following[length] = index
        else:
            following.clear()  # a blank line
    done = 0
    for index, close in enumerate(closes):
        if close is not None and index >= done:
            yield runs[index].start(), runs[close].end()
            done = close + 1


def _seen(piece: re.Match[str], text: str) -> str:
    if piece["sup"]:
        return "^"  # <sup>12</sup> reads as pandoc's ^12^
    if piece["mark"]:
        return ""
    if piece["entity"]:
        return "".join(_plain(character) for character in html.unescape(piece[0]))
    if piece["escaped"]:
        return piece["escaped"]
    character = piece["char"]
    if character == "_":
        before, after = text[piece.start() - 1 : piece.start()], text[piece.end() : piece.end() + 1]
        return "_" if before.isalnum() and after.isalnum() else ""
    if unicodedata.category(character) in ("Mn", "Me"):
        before = text[piece.start() - 1 : piece.start()]
        return character if before.isalpha() and not _INVISIBLE.match(character) else ""
    return _plain(character)


def _plain(character: str) -> str:
    if character == "\n":
        return character
    if _INVISIBLE.match(character) or unicodedata.category(character) in ("Cf", "Cc", "Cs", "Co", "Cn"):
        return " " if character in "\t\r\v\f\u2800" else ""
    if character.isspace():
        return " " if unicodedata.category(character) != "Zp" else "\n"
    if unicodedata.decomposition(character).startswith(("<super>", "<sub>")):
        return character  # keeps superscript numbers distinct from plain ones
    folded = unicodedata.normalize("NFKC", character)
    return (folded if len(folded) == 1 else character).translate(_LOOKALIKES)
