"""What a sentence without a citation is: a statement of the field, the text's own, a view; and its strong words."""

from __future__ import annotations

import pytest

from citeloom.claims.check_files import careful_words
from citeloom.claims.claim_verdicts import uncited_kind


@pytest.mark.parametrize("broken", ["(guo2017calibration?).", "[?]."])
def test_a_broken_citation_does_not_turn_a_statement_into_a_question(broken: str) -> None:
    text = "Temperature scaling has been shown to lower the calibration error"
    assert uncited_kind(f"{text}.", "Introduction") == uncited_kind(f"{text} {broken}", "Introduction") == "needs"
    assert uncited_kind("Does temperature scaling lower the calibration error?", "Introduction") == "opinion"


def test_strong_words_are_softened_except_in_a_quotation() -> None:
    text = "It always proves that \u201cthis always works well for everyone\u201d. Will it?"
    assert [(text[start:end], new) for start, end, new in careful_words(text)] == [
        *(("always", "often"), ("proves", "suggests"), ("Will", "May"))
    ]
    assert careful_words("It w\u0131ll \u017fhow nothing.") == []
