"""The text of each page of a PDF according to another library, and how much of a text it contains."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pypdfium2


def pages_by_pdfium(path: Path) -> list[set[str]]:
    """The words of each page, according to pdfium."""
    document = pypdfium2.PdfDocument(path)
    try:
        return [words(document[number].get_textpage().get_text_range()) for number in range(len(document))]
    finally:
        document.close()


def words(text: str) -> set[str]:
    """Words of four letters or more; shorter ones are on every page."""
    plain = unicodedata.normalize("NFKC", text).replace("\ufffe", "").replace("\u00ad", "")
    return set(re.findall(r"[^\W\d_]{4,}", re.sub(r"-\r?\n", "", plain).casefold()))


def share_on(found: set[str], page: set[str]) -> float:
    """The fraction of the words that are on a page; 1.0 for no words."""
    return len(found & page) / len(found) if found else 1.0
