"""The labelled cases match their README, and the code scores at least as well on them as before."""

from __future__ import annotations

from bench.cases import (
    JudgedSentence,
    noise_shown,
    score_citation,
    score_counting,
    score_markup,
    score_number_forms,
    score_support,
    support_cases,
    whole_passages,
)
from citeloom.citations.markers import sentences


def test_a_judge_that_agrees_with_the_labels_is_right_on_all_thirty_sentences() -> None:
    cases = support_cases()
    said = {
        case["id"]: JudgedSentence(case["label"], frozenset(case["idle"]), frozenset(case["contradicting"]))
        for case in cases
    }
    scores = score_support(said)
    assert len(cases) == 30
    assert all(not score.missed and not score.false for score in scores.values())
    assert scores["idle markers"].right >= 10 and scores["contradicting markers"].right >= 6


def test_each_sentence_cites_exactly_its_passages() -> None:
    for case in support_cases():
        (sentence,) = sentences(case["sentence"])
        assert list(sentence.ids) == [passage["id"] for passage in case["passages"]], case["id"]
        assert len(case["alone"]) == len(case["passages"]) in (2, 3), case["id"]
        assert {*case["idle"], *case["contradicting"]} <= set(sentence.ids), case["id"]


def test_numbers_in_words_are_traced_except_counting_words() -> None:
    scores = score_counting()
    traced, values = scores["numbers in words that must be traced"], scores["their values"]
    assert traced.right + len(traced.missed) == 21
    assert traced.precision == 1.0 and traced.recall == 1.0, (traced.missed, traced.false)
    assert values.recall == 1.0, values.missed


def test_passages_with_markup_are_still_shown_cleanly() -> None:
    units = score_markup()["units of passages, all"]
    assert units.right + len(units.missed) == 88
    assert units.precision >= 0.41 and units.recall >= 0.6, (units.missed, units.false)
    assert whole_passages()[0] >= 3 and noise_shown() <= 0.29


def test_a_citation_is_requested_exactly_where_a_claim_is_made() -> None:
    score = score_citation()
    assert score.right + len(score.missed) == 16
    assert score.precision == 1.0 and score.recall == 1.0, (score.missed, score.false)


def test_a_number_is_recognised_in_the_form_used_by_its_source() -> None:
    found, hinted = score_number_forms()
    assert found.right + len(found.missed) == 19 and hinted.right + len(hinted.missed) == 5
    assert found.precision == 1.0 and found.recall == 1.0, (found.missed, found.false)
    assert hinted.precision == 1.0 and hinted.recall == 1.0, (hinted.missed, hinted.false)
