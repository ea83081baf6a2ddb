"""Eighty pathological texts: those on which a regular expression restarts at each character or backtracks endlessly.

Each is built from a name and a length; most repeat one piece, the last ones add a prefix or suffix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# By name: the prefix, the repeated piece, the suffix.
_PARTS: Final[Mapping[str, tuple[str, str, str]]] = {
    **{
        repr(piece): ("", piece, "")
        for piece in (
            *("-", "—", ".", "?", '"', "“a", "`", "*", "_", "^", "$", "@", "<", "\\", " ", "\t", "\n", "\u00a0"),
            *("(", ")", "()", "[", "[]", "{", "a", "A", "é", "中", "1", "1,", "1 ", "1.", "a-", "a'", "Aa", "a_"),
            *("[E1]", "[E1 ", "(E1, ", "[1, ", "[1-", "@a", "[@a; ", "\\cite{", "\\textbf{", "(Smith ", "Smith, "),
            *("et al. ", "10.1234/", "http://a.", "arXiv.", "<a ", "<!--", "<!-- -->", "</", "&#91;", "`a", "```\n"),
            *("$$a", "A. ", "x_2020", "| a |\n", "- a\n", "> ", "# a\n", "a. ", "Mr. ", "whether ", "data ", "see "),
            *("previous studies ", "\ud800"),
        )
    },
    "an open bracket": ("[", "a ", ""),
    "an open parenthesis": ("(Smith, ", "and others ", ""),
    "an open quotation": ('"', "Aa. ", ""),
    "blanks behind a marker": ("[E1", " ", "x"),
    "blanks inside": ("a", " ", "b"),
    "empty lines inside": ("a", "\n", "b"),
    "an open reference": ("[1", ", 1", "x"),
    "placeholders in brackets": ("((((", "[citation needed] ", "))))"),
    "front matter of lists": ("---\na: ", "[", "\n---\n"),
    "nested JSON": ("", '{"a":', ""),
}
TEXTS: Final = tuple(_PARTS)


def degenerate(name: str, length: int) -> str:
    """The text with this name, `length` characters long."""
    return repeated(_PARTS[name], length)


def repeated(parts: tuple[str, str, str], length: int) -> str:
    """A prefix, a piece repeated up to a length, and a suffix."""
    before, piece, behind = parts
    inside = length - len(before) - len(behind)
    return f"{before}{(piece * (inside // len(piece) + 1))[:inside]}{behind}"
