"""Finds the details (section and page) after the marker of a listed passage; imports nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

# Texts written before 2026-11-28 also name the number of a sentence.
_DETAILS: Final = re.compile(r"(?<=\]), in “[^“”\n]{0,300}”(?:, page \d{1,6})?(?:; near to [^\n]*)?(?=\n|$)")
_WORD: Final = re.compile(r"\w+")


def blank_details(text: str, only: Collection[str] | None = None) -> str:
    """Blank out the details of listed passages (or `only` these), whose numbers and quotes are not the text's."""

    def blank(found: re.Match[str]) -> str:
        return " " * len(found[0]) if only is None or _plain(found[0]) in only else found[0]

    return _DETAILS.sub(blank, text)


def has_details(text: str, position: int) -> bool:
    """Whether details follow the marker that ends at this position."""
    return _DETAILS.match(text, position) is not None


def set_page(text: str, evidence_id: str, page: int | None) -> str:
    """Set the page in the details of a listed passage, if it has details."""
    place = rf"(\[{re.escape(evidence_id)}\], in “[^“”\n]{{0,300}}”)(?:, page \d{{1,6}})?"
    return re.sub(place, lambda found: found[1] + ("" if page is None else f", page {page}"), text)


def find_details(text: str) -> set[str]:
    """Find the details of passages in lists."""
    return {_plain(found[0]) for found in _DETAILS.finditer(text)}


def _plain(words: str) -> str:
    return " ".join(_WORD.findall(words.casefold()))
