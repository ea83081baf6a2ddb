"""A sentence that a paper says twice is found however it is dressed, and left out the second time."""

from __future__ import annotations

import pytest

from citeloom.citations.checks.repeated_sentences import repeated_findings, without_repeats

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
def test_a_sentence_that_stood_before_is_found_and_left_out(again: str) -> None:
    text = f"The answer is plain to see. {again} More wearers are needed."
    (finding,) = repeated_findings(text, EARLIER)
    assert finding.span is not None and text[slice(*finding.span)] == again
    assert "in the results" in finding.message
    kept, left_out = without_repeats(text, EARLIER)
    assert kept == "The answer is plain to see. More wearers are needed."
    assert len(left_out) == 1


@pytest.mark.parametrize(
    "other",
    [
        "Pooling five seeds halved the calibration error of most networks [E2].",
        "Pooling 5 seeds halved the calibration error of a single network [E2].",
        "We say again that pooling five seeds halved the calibration error of a single network.",
    ],
)
def test_a_sentence_in_other_words_stays(other: str) -> None:
    assert repeated_findings(other, EARLIER) == []
    assert without_repeats(other, EARLIER) == (other, ())


def test_numbers_tell_sentences_apart() -> None:
    before = {"results": "The error fell from 0.118 to 0.052 on new wearers."}
    assert not repeated_findings("The error fell from 0.118 to 0.068 on new wearers.", before)
    assert repeated_findings("The error fell from 0.118 to 0.052 on new wearers [E1].", before)


def test_a_short_sentence_may_come_again() -> None:
    assert without_repeats("It did not hold. So much is clear.", {"results": "It did not hold."})[1] == ()


def test_a_sentence_said_twice_in_one_section_is_kept_once() -> None:
    text = f"{SAID} It holds on every wearer.\n\n{SAID}"
    kept, (finding,) = without_repeats(text, {})
    assert kept == f"{SAID} It holds on every wearer."
    assert "in this section" in finding.message


def test_paragraphs_stay_apart_and_empty_ones_go() -> None:
    text = f"First comes the answer to the question.\n\n{SAID}\n\nThen comes what it means for others."
    assert without_repeats(text, EARLIER)[0].split("\n\n") == [
        "First comes the answer to the question.",
        "Then comes what it means for others.",
    ]
