"""One side of a contradiction, as it is written down."""

from __future__ import annotations

from citeloom.api.contradiction_search import _passage
from citeloom.documents import Category, Chunk, Paper
from citeloom.roles.protocols import Statement


def test_a_quote_has_the_page_on_which_it_begins() -> None:
    text = "It is on this page. It is on the next."
    chunk = Chunk(
        "k2020:00003", "k2020", 3, text, "Results", "", Category.EVALUATION, 2, 7, 0, len(text), 10, page_breaks=(20,)
    )
    statement = Statement(chunk, Paper("k2020", "T", year=2020), ((0, 19), (20, len(text))))
    sides = [_passage(statement, place) for place in (0, 1)]
    assert [(side["page"], side["quote"]) for side in sides] == [(7, "It is on this page."), (8, "It is on the next.")]
    assert {(side["section"], side["chunk_id"], side["year"]) for side in sides} == {("Results", "k2020:00003", 2020)}
