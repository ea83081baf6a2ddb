"""The words around a quote are shown without Markdown, and stay separate from the quote."""

from __future__ import annotations

import pytest

from citeloom.server.routes.html import without_markup


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("## Results\nThe *spread* fell ", "Results\nThe spread fell "),
        (" by **two** percent, see [the table](#t).", " by two percent, see the table."),
        ("- one\n- `two`", "- one\n- two"),
        (".\nFrom *it*", ".\nFrom it"),
        (") rose, as [@x2020]", ") rose, as"),
        ("**While one half is cut off. ", "While one half is cut off. "),
        ("the other** of PAUP\\* and 2**3", "the other of PAUP* and 2**3"),
        ("", ""),
        (" ", " "),
    ],
)
def test_markup_is_removed_and_outer_blanks_are_kept(written: str, shown: str) -> None:
    assert without_markup(written) == shown
