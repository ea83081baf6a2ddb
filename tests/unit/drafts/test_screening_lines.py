"""The paragraph that ends an inventory: how many papers were screened, and which were left out and why."""

from __future__ import annotations

from typing import Any

from citeloom.documents import Paper
from citeloom.drafts.page_record import screening_lines
from citeloom.drafts.written_draft import QuestionSearch

PAPERS = {key: Paper(key, f"On {key}", year=2020) for key in ("looms", "mills", "yarn")}


def search(**route: Any) -> QuestionSearch:
    record: Any = {"track": "survey", "papers": [], "categories": [], "kind": "inventory", "start": [], **route}
    return QuestionSearch(record, [], limited=False)


SCREENED = {"cards": 57, "opened": ["looms", "mills", "gone"], "near": {"yarn": "a review"}}


def test_an_inventory_says_what_was_screened_and_why_near_misses_are_left_out() -> None:
    assert screening_lines(search(screened=SCREENED), PAPERS, ["looms"]).strip().splitlines() == [
        "Screened by their cards: 57 papers; 2 opened, 1 of them cited. Left out:",
        "",
        "- On yarn (2020): a review.",
        "- Opened but not cited: On mills (2020).",
    ]


def test_a_cited_near_miss_is_not_listed_as_left_out() -> None:
    assert screening_lines(search(screened=SCREENED), PAPERS, ["looms", "yarn"]).strip().splitlines() == [
        "Screened by their cards: 57 papers; 3 opened, 2 of them cited. Left out:",
        "",
        "- Opened but not cited: On mills (2020).",
    ]


def test_other_questions_do_not_mention_screening() -> None:
    assert not screening_lines(search(screened=SCREENED, kind="survey"), PAPERS, [])
    assert not screening_lines(search(), PAPERS, []) and not screening_lines(None, PAPERS, [])
