"""A listed passage shows the page of its evidence."""

from __future__ import annotations

import pytest

from citeloom.roles.extractive.passage_details import set_page


@pytest.mark.parametrize(
    ("before", "page", "after"),
    [
        ("“Looms scale” [E1], in “Results”, page 8; near to N2", None, "“Looms scale” [E1], in “Results”; near to N2"),
        ("“Looms scale” [E1], in “Results”, page 8", 9, "“Looms scale” [E1], in “Results”, page 9"),
        ("“Looms scale” [E1], in “Results”", 9, "“Looms scale” [E1], in “Results”, page 9"),
        ("Looms scale [E1], page 8 says.", 9, "Looms scale [E1], page 8 says."),
    ],
)
def test_a_changed_page_is_updated_or_removed(before: str, page: int | None, after: str) -> None:
    assert set_page(before, "E1", page) == after
