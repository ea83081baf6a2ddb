"""A quotation shows an ellipsis exactly where words of the passage are left out."""

from __future__ import annotations

import pytest

from citeloom.documents.plain_text import format_quote, omit_pointers


@pytest.mark.parametrize(
    ("text", "quote", "shown"),
    [
        ("Degree explains most edges.", "Degree explains most edges", "Degree explains most edges"),
        ("However, degree explains most edges.", "degree explains most edges", "… degree explains most edges"),
        ("Degree explains most edges, not all.", "Degree explains most edges", "Degree explains most edges …"),
        ("So, in part, degree explains it, if at all.", "degree explains it", "… degree explains it …"),
        (
            "Degree explains most edges [@lee2020; @kim2019].",
            "Degree explains most edges",
            "Degree explains most edges",
        ),
        ("Degree explains most edges.^12^ Seeds do not.", "Degree explains most edges", "Degree explains most edges"),
        ("Seeds do not. Degree does.\n\nOther text.", "Degree does", "Degree does"),
        ("Ranks were high (AUROC = 97.4%, Figure @fig:a).", None, "Ranks were high (AUROC = 97.4%, …)"),
        ("Ranks were high (Fig. 2a) and stable.", None, "Ranks were high … and stable"),
        ("Ranks were high ([Table 1](#pone.t1)).", None, "Ranks were high …"),
        ("Ranks were high (see Table 3; Figure S1).", None, "Ranks were high …"),
        ("Ranks were high (HR, 2.18; [Fig. 4](#g4), left).", None, "Ranks were high (HR, 2.18, …)"),
        ("Ranks were high (in all five runs).", None, "Ranks were high (in all five runs)"),
        ("A line\nbroken in two.", "A line\nbroken in two", "A line broken in two"),
    ],
)
def test_an_ellipsis_marks_omitted_text(text: str, quote: str | None, shown: str) -> None:
    quote = quote or text.rstrip(".")
    start = text.index(quote)
    assert format_quote(text, start, start + len(quote)) == shown


@pytest.mark.parametrize("words", ["Ranks (p < 0.05) were high", "f(x, y) = x", "Ranks (and so on, A) were high", ""])
def test_brackets_without_a_target_are_kept(words: str) -> None:
    assert omit_pointers(words) == words
