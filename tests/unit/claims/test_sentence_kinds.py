"""What a sentence without a citation is: a statement of the field, the text's own, a view."""

from __future__ import annotations

import pytest

from citeloom.claims.sentence_kinds import uncited_kind


@pytest.mark.parametrize("broken", ["(guo2017calibration?).", "[?]."])
def test_a_broken_citation_makes_no_question_of_a_statement(broken: str) -> None:
    text = "Temperature scaling has been shown to lower the calibration error"
    assert uncited_kind(f"{text}.", "Introduction") == uncited_kind(f"{text} {broken}", "Introduction") == "needs"
    assert uncited_kind("Does temperature scaling lower the calibration error?", "Introduction") == "opinion"
