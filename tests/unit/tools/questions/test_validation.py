"""Which questions can be asked, and that they become one line."""

from __future__ import annotations

import pytest

from citeloom.errors import WRONG_INPUT, InputError
from citeloom.tools.questions.validation import MOST_WORDS, plain_question


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("  How do\n graphs\tpass messages?  ", "How do graphs pass messages?"),
        ("什么是 temperature scaling?", "什么是 temperature scaling?"),
        ("Why " * MOST_WORDS, " ".join(["Why"] * MOST_WORDS)),
    ],
)
def test_white_space_is_folded_and_no_word_is_lost(typed: str, asked: str) -> None:
    assert plain_question(typed) == asked


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "nothing to look for"),
        (" \n\t ", "nothing to look for"),
        ("?!", "nothing to look for"),
        ("why " * 10_000, "10,000 words"),
        ("鱼" * 4001, "at most"),
        ("Is it \x1b[31mred?", "U+001B"),
        ("a\x00b", "U+0000"),
        ("half \ud800 a character", "U+D800"),
        (None, "NoneType"),
        (["How?"], "list"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(typed: object, said: str) -> None:
    with pytest.raises(InputError) as caught:
        plain_question(typed)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.exit_code == WRONG_INPUT
