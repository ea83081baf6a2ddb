"""A sentence repeated in a paper is found whatever its citations and markup."""

from __future__ import annotations

import pytest

from citeloom.citations.checks.repetition import repeated_findings

SAID = "Pooling five seeds halved the calibration error of a single network [E2]."
EARLIER = {"results": f"One network was poorly calibrated. {SAID}"}


@pytest.mark.parametrize(
    "again",
    [
        SAID,
        "Pooling five seeds halved the calibration error of a single network.",
        "Pooling five seeds halved the calibration error of a single network [E7][E9].",
        "*Pooling* five seeds  halved the calibration error, of a single network!",
        "POOLING FIVE SEEDS HALVED THE CALIBRATION ERROR OF A SINGLE NETWORK.",
        "Pooling five seeds halved the calibration error\nof a single network [citation needed].",
    ],
)
def test_a_sentence_that_appeared_before_is_found(again: str) -> None:
    text = f"The answer is plain to see. {again} More wearers are needed."
    (finding,) = repeated_findings(text, EARLIER)
    assert finding.span is not None and text[slice(*finding.span)] == again
    assert "in the results" in finding.message


@pytest.mark.parametrize(
    "other",
    [
        "Pooling five seeds halved the calibration error of most networks [E2].",
        "Pooling 5 seeds halved the calibration error of a single network [E2].",
        "We say again that pooling five seeds halved the calibration error of a single network.",
    ],
)
def test_a_reworded_sentence_is_not_a_repeat(other: str) -> None:
    assert repeated_findings(other, EARLIER) == []


def test_sentences_with_different_numbers_are_not_repeats() -> None:
    before = {"results": "The error fell from 0.118 to 0.052 on new wearers."}
    assert not repeated_findings("The error fell from 0.118 to 0.068 on new wearers.", before)
    assert repeated_findings("The error fell from 0.118 to 0.052 on new wearers [E1].", before)


def test_a_short_sentence_may_be_repeated() -> None:
    assert not repeated_findings("It did not hold. So much is clear.", {"results": "It did not hold."})


def test_a_sentence_said_twice_in_one_section_is_found() -> None:
    (finding,) = repeated_findings(f"{SAID} It holds on every wearer.\n\n{SAID}", {})
    assert "in this section" in finding.message
