"""A search inside the limits that a user set: it is never wider than these."""

from __future__ import annotations

import pytest

from citeloom.documents import Category, Paper
from citeloom.tools.scope import Scope

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
    assert asked.narrowed(limits) == left


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
def test_a_paper_is_inside_or_not(scope: Scope, inside: bool) -> None:
    assert scope.holds(PAPER) is inside


def test_a_paper_without_a_year_is_in_no_time() -> None:
    assert not Scope(years=(0, 9999)).holds(Paper("a", "A"))
