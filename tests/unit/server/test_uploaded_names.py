"""The names under which uploads are stored."""

from __future__ import annotations

import pytest

from citeloom.server.uploaded_files import refusal_reason, safe_name

NAMES = [
    ("paper.pdf", "paper.pdf"),
    ("Über uns.PDF", "Über uns.pdf"),
    ("../../etc/passwd.md", "passwd.md"),
    ("..\\..\\x.md", "x.md"),
    ("C:\\papers\\x.md", "x.md"),
    (".hidden.md", "hidden.md"),
    ("a\x00b.md", "ab.md"),
    ("a\nb.md", "ab.md"),
    ("CON.md", "CON_.md"),
    ("x" * 300 + ".pdf", "x" * 150 + ".pdf"),
    ("smith2024.notes.md", "smith2024.notes.md"),
    ("half\ud800.md", "half.md"),
    ("ü" * 200 + ".pdf", "ü" * 75 + ".pdf"),
    ("...", ""),
    ("", ""),
    ("/", ""),
]


@pytest.mark.parametrize(("given", "stored"), NAMES)
def test_a_name_is_stored_without_ambiguous_characters(given: str, stored: str) -> None:
    assert safe_name(given) == stored


def test_names_that_are_equal_on_some_file_systems_are_refused() -> None:
    assert refusal_reason("Paper.pdf", ["paper.pdf"]) == "has the same name as another file of this upload"
    assert refusal_reason("b.bib", ["a.bib"]) == "is a second .bib file; send one"
    assert refusal_reason("paper.pdf", ["other.pdf"]) == ""
