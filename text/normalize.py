"""When two queries are the same but for how they are typed."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_DASHES: Final = re.compile("[\u2010-\u2015]")
# Marks that only punctuate. Those inside numbers (0.95, -1), and what names things (C++, C#, 50%), say something.
_MARKS: Final = re.compile(r"[.,:](?![0-9])|[;!?\"“”„«»‘’'`()\[\]{}…]|(?<=[^\W\d])-(?=[^\W\d])")


def plain_wording(query: str) -> str:
    """`query` in small letters, its words one space apart, without the marks that only punctuate it.

    What is left empty by that stays as it was: a query of marks alone equals only itself.
    """
    text = _DASHES.sub("-", unicodedata.normalize("NFKC", query)).casefold()
    return " ".join(_MARKS.sub(" ", text.replace("'s", "s").replace("’s", "s")).split()) or query


_MOSTLY = 0.7


def is_latin(text: str) -> bool:
    """Whether most letters of a text are Latin; true of a text without letters."""
    letters = [character for character in text if character.isalpha()]
    latin = sum(unicodedata.name(character, "").startswith("LATIN") for character in letters)
    return latin >= _MOSTLY * len(letters)
