"""In which script a text is written, as far as the small English models care."""

from __future__ import annotations

import unicodedata

_MOSTLY = 0.7


def is_latin(text: str) -> bool:
    """Whether most letters of a text are Latin; true of a text without letters."""
    letters = [character for character in text if character.isalpha()]
    latin = sum(unicodedata.name(character, "").startswith("LATIN") for character in letters)
    return latin >= _MOSTLY * len(letters)
