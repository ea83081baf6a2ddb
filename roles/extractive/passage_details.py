"""Details listed after a passage's marker: its place; imports nothing heavy, for fast commands."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

# Texts written before 2026-11-28 also name the number of a sentence.
_DETAILS: Final = re.compile(r"(?<=\]), in “[^“”\n]{0,300}”(?:, page \d{1,6})?(?:; near to [^\n]*)?(?=\n|$)")
_WORD: Final = re.compile(r"\w+")


def blank_details(text: str, only: Collection[str] | None = None) -> str:
    """Blank out the details of listed passages, or `only` these: their numbers and quotes are not the text's."""

    def blank(found: re.Match[str]) -> str:
        return " " * len(found[0]) if only is None or _plain(found[0]) in only else found[0]

    return _DETAILS.sub(blank, text)


def has_details(text: str, position: int) -> bool:
    """Whether a list names the place of the passage whose marker ends here."""
    return _DETAILS.match(text, position) is not None


def with_page(text: str, evidence_id: str, page: int | None) -> str:
    """The text with this page in the details of a listed passage, if it has any."""
    place = rf"(\[{re.escape(evidence_id)}\], in “[^“”\n]{{0,300}}”)(?:, page \d{{1,6}})?"
    return re.sub(place, lambda found: found[1] + ("" if page is None else f", page {page}"), text)


def find_details(text: str) -> set[str]:
    """Find the details of passages in lists."""
    return {_plain(found[0]) for found in _DETAILS.finditer(text)}


def _plain(words: str) -> str:
    return " ".join(_WORD.findall(words.casefold()))
