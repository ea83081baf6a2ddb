"""A note and its passages: no text is lost, and each passage is short enough to be embedded."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from citeloom.documents.chunking import make_note
from citeloom.documents.types import note_stem

TEXTS = st.text(st.sampled_from("ab é.!?\n\r\t#-"), min_size=1, max_size=900).filter(str.strip)


def count(text: str) -> int:
    return len(text.split())


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.integers(3, 60))
def test_passages_are_in_order_and_leave_out_only_white_space(text: str, target: int) -> None:
    note = make_note(text, count, target=target)
    ends = [0, *(place for span in note.spans for place in span), len(text)]
    assert ends == sorted(ends) and note.passages
    between = zip(ends[::2], ends[1::2], strict=True)
    assert not any(text[start:end].strip() for start, end in between)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.integers(3, 60))
def test_a_passage_exceeds_its_size_only_if_it_would_be_short(text: str, target: int) -> None:
    assert all(
        count(passage) <= target or len(passage) <= 200 for passage in make_note(text, count, target=target).passages
    )


def test_paragraphs_stay_together_if_they_fit() -> None:
    assert make_note("One.\n\nTwo.\n\nThree three three.", count, target=3).passages == (
        "One.\n\nTwo.",
        "Three three three.",
    )
    assert make_note("x" * 1000, len, target=300).passages == ("x" * 250,) * 4


@pytest.mark.parametrize(
    ("name", "stem"),
    [("a.notes.md", "a"), ("a.NOTES.Md", "a"), ("a.b.notes.md", "a.b"), ("notes.md", None), ("a.note.md", None)],
)
def test_a_note_belongs_to_the_paper_in_its_file_name(name: str, stem: str | None) -> None:
    assert note_stem(Path(name)) == stem
