"""The limits of a search are never wider than those that a user set; a question becomes one line."""

from __future__ import annotations

import pytest

from citeloom.documents import Category, Paper
from citeloom.errors import WRONG_INPUT, InputError
from citeloom.tools.scope import MOST_WORDS, Scope, plain_question

PAPER = Paper("a2015b", "On A", year=2015, venue="Journal of Things")


@pytest.mark.parametrize(
    ("asked", "limits", "left"),
    [
        (Scope(), Scope(), Scope()),
        (Scope(("a", "b")), Scope(("b", "c")), Scope(("b",))),
        (Scope(("a",)), Scope(("b", "c")), Scope(("b", "c"))),
        (Scope(), Scope(("b",), years=(2000, 2010)), Scope(("b",), years=(2000, 2010))),
        (Scope(years=(1990, 2005)), Scope(years=(2000, 2010)), Scope(years=(2000, 2005))),
        (Scope(years=(1990, 1995)), Scope(years=(2000, 2010)), Scope(years=(2000, 2010))),
        (Scope(("a",), (Category.METHOD,)), Scope(venue="things"), Scope(("a",), (Category.METHOD,), None, "things")),
    ],
)
def test_a_search_stays_inside_the_limits(asked: Scope, limits: Scope, left: Scope) -> None:
    assert asked.narrow(limits) == left


@pytest.mark.parametrize(
    ("scope", "inside"),
    [
        (Scope(), True),
        (Scope(("a2015b",), years=(2015, 2015), venue="of THINGS"), True),
        (Scope(("other",)), False),
        (Scope(years=(2016, 9999)), False),
        (Scope(venue="Science"), False),
    ],
)
def test_a_paper_is_either_inside_or_outside_the_scope(scope: Scope, inside: bool) -> None:
    assert scope.holds(PAPER) is inside


def test_a_paper_without_a_year_is_outside_every_range_of_years() -> None:
    assert not Scope(years=(0, 9999)).holds(Paper("a", "A"))


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("  How do\n graphs\tpass messages?  ", "How do graphs pass messages?"),
        ("什么是 temperature scaling?", "什么是 temperature scaling?"),
        ("Why " * MOST_WORDS, " ".join(["Why"] * MOST_WORDS)),
    ],
)
def test_white_space_is_collapsed_and_no_word_is_lost(typed: str, asked: str) -> None:
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
def test_an_impossible_search_is_refused_in_one_line(typed: object, said: str) -> None:
    with pytest.raises(InputError) as caught:
        plain_question(typed)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.exit_code == WRONG_INPUT
