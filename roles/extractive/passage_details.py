"""What the mode without a chat model lists of a passage after its marker: its place, score and nearest statement.

Checks and exports read these lines, and none of their imports: commands that list runs start without numpy.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_DETAILS: Final = re.compile(r"(?<=\]), [^“”\n]{0,300}; score \d\.\d\d(?:; near to [^\n]*)?")
_WORD: Final = re.compile(r"\w+")


def blank_details(text: str, only: Collection[str] | None = None) -> str:
    """The text with blanks in place of what a list says of a passage, whose numbers and quotes are nobody's statements.

    `only` are the details to blank, as `find_details` gives them; all if omitted.
    """

    def blank(found: re.Match[str]) -> str:
        return " " * len(found[0]) if only is None or _plain(found[0]) in only else found[0]

    return _DETAILS.sub(blank, text)


def has_details(text: str, position: int) -> bool:
    """Whether a list names the place of the passage whose marker ends here."""
    return _DETAILS.match(text, position) is not None


def find_details(text: str) -> set[str]:
    """The words of what the lists say of passages: place, score and statement."""
    return {_plain(found[0]) for found in _DETAILS.finditer(text)}


def _plain(words: str) -> str:
    return " ".join(_WORD.findall(words.casefold()))
