"""Normalises the wording of queries, decodes HTML entities, and detects the Latin script."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

_DASHES: Final = re.compile("[\u2010-\u2015]")
# Pure punctuation. Signs inside numbers (0.95, -1) and names (C++, C#, 50%) are significant.
_MARKS: Final = re.compile(r"[.,:](?![0-9])|[;!?\"“”„«»‘’'`()\[\]{}…]|(?<=[^\W\d])-(?=[^\W\d])")
_NO_CODE_POINT: Final = re.compile(r"&#0*+[1-9]\d{7,}+;?")


def one_line(text: str) -> str:
    """`text` with every run of white space folded to a space."""
    return " ".join(text.split())


def unescape_html(text: str) -> str:
    """`text` with HTML entities decoded; U+FFFD for a number of any length that names no character."""
    return html.unescape(_NO_CODE_POINT.sub("\ufffd", text))


def plain_wording(query: str) -> str:
    """`query` in lower case, with single spaces and without punctuation.

    A query of punctuation alone is returned unchanged, so that it equals only itself.
    """
    text = _DASHES.sub("-", unicodedata.normalize("NFKC", query)).casefold()
    return " ".join(_MARKS.sub(" ", text.replace("'s", "s").replace("’s", "s")).split()) or query


_MOSTLY = 0.7


def is_latin(text: str) -> bool:
    """Whether most letters of a text are Latin; true for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    latin = sum(unicodedata.name(character, "").startswith("LATIN") for character in letters)
    return latin >= _MOSTLY * len(letters)
