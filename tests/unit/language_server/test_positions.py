"""Positions of an editor, in units of UTF-16, and offsets in the text."""

from __future__ import annotations

import pytest
from lsprotocol.types import Position

from citeloom.language_server.manuscript_documents import ManuscriptDocument

TEXT = "One \U0001f600 line.\r\nA second é.\n\nthe last"


@pytest.mark.parametrize("text", [TEXT, f"{TEXT}\n", "", "\n"])
def test_every_offset_is_restored_from_its_position(text: str) -> None:
    document = ManuscriptDocument("file:///a.md", text)
    offsets = [place for place in range(len(text) + 1) if text[place - 1 : place + 1] != "\r\n"]
    assert [document.place(document.position(place)) for place in offsets] == offsets


def test_a_character_outside_the_basic_plane_counts_twice() -> None:
    document = ManuscriptDocument("file:///a.md", TEXT)
    assert document.position(TEXT.index("line")) == Position(0, 7)
    assert document.place(Position(0, 99)) == TEXT.index("\r")
    assert document.place(Position(99, 0)) == len(TEXT)


def test_the_lines_of_a_text_are_split_only_once() -> None:
    """A check asks for a position per sentence, which took seconds in a long text when it was split each time."""
    document = ManuscriptDocument("file:///a.md", TEXT)
    assert document.lines is document.lines
