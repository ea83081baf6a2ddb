"""Words of a user or a paper that look like a marker stay text at every position."""

from __future__ import annotations

import pytest

from citeloom.citations.markers import marker_ids, normalise_markers
from citeloom.documents.marker_escaping import escape_markers, strip_placeholders, unescape

WRITTEN = (
    "[E1]", "estradiol (E2)", "[[E1]]", "[e3, E5]", "\u3010E3\u3011", "(E3)", "^[E1]^", "&#91;E1&#93;", "\\[E1\\]",
    "[**E1**]", "\uff3bE1\uff3d", "[see E1]", "(see [E 1])", "[ Evidence E1 ]", "[`E1`]", "[E1](#x)", "[E01]",
    "[\u04151]", "[E<b></b>1]", "[E\u200b1]", "[E\n1]", "[E1; @x]", "[\nE1]", "[2, E1]",
    "&lbrack;E1&rbrack;", "[&#69;1]",
)  # fmt: skip


@pytest.mark.parametrize("words", WRITTEN)
def test_text_that_looks_like_a_marker_is_escaped(words: str) -> None:
    kept = escape_markers(f"Before it {words} after it.")
    assert marker_ids(normalise_markers(kept)) == ()
    assert unescape(kept) == f"Before it {words} after it."
    assert len(kept) == len(f"Before it {words} after it.")


@pytest.mark.parametrize("words", ["[0, 1]", "f(x)", "[@lee2020]", "(Lee, 2020)", "AT&T", "[12]", "stage2 (T3)"])
def test_other_words_are_left_alone(words: str) -> None:
    assert escape_markers(words) == words


def test_stand_in_characters_typed_by_others_are_removed() -> None:
    assert strip_placeholders(escape_markers("so [E1] it is")) == "so E1 it is"
