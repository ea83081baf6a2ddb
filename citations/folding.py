"""A text as a reader sees it, for looking at what a model wrote without being fooled by how it wrote it.

`[**12**]`, `［12］`, `&#91;12&#93;`, `\\[12\\]` and `[1<b></b>2]` all read as [12]. Detection works on the
folded view, in which such dress is taken off; every character of the view knows where it stands in the text,
so what is found can be replaced there. The text itself is never changed by folding.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass

_PIECE = re.compile(
    r"""
      (?P<comment><!--.*?-->)
    | (?P<sup></?sup\s*>)
    | (?P<tag></?[a-zA-Z][a-zA-Z0-9-]*(?:\s[^<>]*)?/?>)
    | (?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});)
    | \\(?P<escaped>[!-/:-@\[-`{-~])
    | (?P<mark>\*+|`+|~~)
    | (?P<char>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CODE = re.compile(r"(?ms)^(?:```|~~~).*?^(?:```|~~~)[ \t]*$|(`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)\1(?!`)")

# Brackets that NFKC leaves alone, and letters that look like the E of a marker.
_LOOKALIKES = str.maketrans(
    {
        **dict.fromkeys("【〔〖〚⟦❲⁅⦋⟬", "["),
        **dict.fromkeys("】〕〗〛⟧❳⁆⦌⟭", "]"),
        **dict.fromkeys("❨❪⟮⦅", "("),
        **dict.fromkeys("❩❫⟯⦆", ")"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58", "-"),
        **dict.fromkeys("\u2018\u2019\u02bc", "'"),
    }
)
# Blank or invisible, though Unicode files some of them under letters.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


@dataclass(frozen=True, slots=True)
class Folded:
    """The view `text`; its character i stands at `starts[i]:ends[i]` of the original.

    `hidden` are the spans of comments and tags, which the view leaves out; `code` the spans of code, in
    characters of the original too.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    hidden: tuple[tuple[int, int], ...]
    code: tuple[tuple[int, int], ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]` (not empty) stands in the original."""
        return self.starts[start], self.ends[end - 1]

    def in_code(self, position: int) -> bool:
        """Whether a position of the original lies in code."""
        return any(start <= position < end for start, end in self.code)


def fold(text: str) -> Folded:
    """The folded view of `text`."""
    shown: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    hidden: list[tuple[int, int]] = []
    for piece in _PIECE.finditer(text):
        start, end = piece.span()
        if piece["comment"] or piece["tag"]:
            hidden.append((start, end))
            continue
        for character in _seen(piece, text):
            shown.append(character)
            starts.append(start)
            ends.append(end)
    code = tuple(match.span() for match in _CODE.finditer(text))
    return Folded("".join(shown), tuple(starts), tuple(ends), tuple(hidden), code)


def _seen(piece: re.Match[str], text: str) -> str:
    """What a reader sees of one piece."""
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
        return character if before.isalpha() and not _plain_is_empty(character) else ""
    return _plain(character)


def _plain_is_empty(character: str) -> bool:
    return character in _INVISIBLE or "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _plain(character: str) -> str:
    """One character in its plain form; empty when it is invisible."""
    if character == "\n":
        return character
    if _plain_is_empty(character) or unicodedata.category(character) in ("Cf", "Cc", "Cs", "Co", "Cn"):
        return " " if character in "\t\r\v\f\u2800" else ""
    if character.isspace():
        return " " if unicodedata.category(character) != "Zp" else "\n"
    if unicodedata.decomposition(character).startswith(("<super>", "<sub>")):
        return character  # a superscript number is told apart from a plain one
    folded = unicodedata.normalize("NFKC", character)
    return (folded if len(folded) == 1 else character).translate(_LOOKALIKES)
