"""What citations in a user's text name, by the labelled cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from citeloom.citations.cited_works import CitedWork, WorkIndex, expand_numbers, find_marks, pages_in, parse_keys
from citeloom.documents import Paper

CASES = json.loads((Path(__file__).parents[1] / "cases" / "check_marker_cases.json").read_text(encoding="utf-8"))
PAPERS = [Paper(key, "", tuple(names.split("|")), year) for key, (names, year) in CASES["entries"].items()]


@pytest.mark.parametrize(
    "case",
    [case for case in CASES["cases"] if case["format"] == "md" and case["id"] != "md-number-brackets-list"],
    ids=lambda case: str(case["id"]),
)
def test_citations_in_markdown_name_the_works_that_a_reader_sees(case: dict[str, object]) -> None:
    index = WorkIndex(PAPERS, {number: str(number) for number in range(1, 10)})
    marks = find_marks(str(case["text"]), CASES["entries"])
    assert [[index.key_of(work) for work in mark.works] for mark in marks] == case["cites"]


def test_locators_are_kept_with_their_works() -> None:
    (mark,) = find_marks("Looms scale [see @smith2020, pp. 4-6; @lee2019, p. 9].")
    assert [sorted(work.pages) for work in mark.works] == [[4, 5, 6], [9]]
    assert parse_keys("smith2020, p. 4; lee2019", {"smith2020", "lee2019"}) == [
        CitedWork("smith2020", pages=frozenset({4})),
        CitedWork("lee2019"),
    ]
    assert parse_keys("smith2020, who was wrong", {"smith2020"}) == []


def test_several_years_of_the_same_authors_are_separate_works() -> None:
    (mark,) = find_marks("So it was (Smith 2019, 2020a, b).")
    assert [work.year for work in mark.works] == ["2019", "2020a", "2020b"]


def test_neighbouring_numbers_are_one_citation_and_ranges_are_expanded() -> None:
    (mark,) = find_marks("Looms scale [1]\u2013[4].")
    assert [work.number for work in mark.works] == [1, 2, 3, 4]
    assert expand_numbers("3, 5-7; 9") == [3, 5, 6, 7, 9]
    assert expand_numbers("3-900") == [3]
    assert sorted(pages_in("p. 4, 6")) == [4, 6]


def test_a_name_that_fits_two_papers_identifies_neither() -> None:
    twins = [Paper("a", "", ("Ada Smith",), 2020), Paper("b", "", ("Zoe Smith",), 2020)]
    (mark,) = find_marks("Looms scale (Smith 2020).")
    assert WorkIndex(twins).key_of(mark.works[0]) == ""
    assert WorkIndex(twins).find_papers(mark.works[0]) == ["a", "b"]
