"""Claims that sources lack something are judged by the searches, never by a passage, and only if needs were planned."""

from __future__ import annotations

import time

import pytest

from citeloom.citations.checks.support_findings import (
    absence_findings,
    absence_pairs,
    cited_claims,
    states_absence,
    states_only_absence,
)
from citeloom.citations.markers import sentences
from tests.support.citation_samples import make_source


@pytest.mark.parametrize(
    "text",
    [
        "The library does not report how dropout affects calibration.",
        "No source examines the effect of age on sleep [E1].",
        "None of the papers compares the two directly.",
        "Whether this holds in mice is not reported in the sources.",
        "The sources leave open whether it generalises.",
        "Nothing in the library addresses cost.",
        "The passages do not say how many wearers took part [E2].",
        "Neither source quantifies the effect [E1][E2].",
        "The available evidence does not address children.",
        "No direct comparison of the two was found in the library.",
        "The sources here don't specify the learning rate.",
        "This remains unanswered by the sources.",
        "No study has examined this in children.",
        "Node degree bias is not quantified in any of the retrieved papers.",
        "None of the studies reviewed here examines semantic change.",
        "The studies reviewed here do not address change point detection.",
        "Among the papers considered, none tests instability in small corpora.",
        "The library was searched for the effect of uneven cluster sizes in stepped-wedge trials and has nothing.",
        "The library was searched in vain for trials of children.",
    ],
)
def test_a_statement_of_absence_is_recognised(text: str) -> None:
    (sentence,) = sentences(text)
    assert states_absence(sentence) and states_only_absence(sentence)


@pytest.mark.parametrize(
    "text",
    [
        "The study did not find an effect of age [E1].",
        "No study has examined this in children [E3].",  # which the cited paper says of the others
        "There was no difference in the sources of variance [E1].",
        "The model does not report uncertainty [E2].",
        "No evidence of bias was found [E1].",
        "Sources of error include drift [E1].",
        "Whether it generalises remains open.",
        "Open-source tools do not cover Windows [E1].",
        "Light sources did not include lamps [E1].",
    ],
)
def test_a_negative_result_is_not_a_statement_of_absence(text: str) -> None:
    assert not states_absence(sentences(text)[0])


def test_a_claim_beside_a_statement_of_absence_is_still_judged() -> None:
    text = (
        "Dropout improves calibration on natural images [E1], but no source reports its effect on clinical data."
        " The library does not report its cost [E1]."
    )
    source = make_source("E1")
    assert list(cited_claims(text, [source])) == [sentences(text)[0].text]
    assert absence_pairs(text, [source]) == [(sentences(text)[1].text, "E1")]


def test_the_first_sentence_of_a_paragraph_and_those_of_the_last_may_sum_up_others() -> None:
    text = "Opening [E1]. Second [E1].\n\nNext [E1]. More [E1].\n\nVerdict [E1]. Its limit [E1].\n"
    may = [claim.may_sum_up for claim in cited_claims(text, [make_source("E1")]).values()]
    assert may == [True, False, True, False, True, True]
    assert not cited_claims("One paragraph [E1]. Its end [E1].", [make_source("E1")])["Its end [E1]."].may_sum_up


def test_only_a_failed_search_for_a_need_supports_a_statement_of_absence() -> None:
    text = "The library does not report how dropout affects calibration on clinical data."
    assert absence_findings(text, None) == [], "a run without needs cannot tell"
    assert absence_findings(text, ["How does dropout change calibration on clinical data?"]) == []
    for needs in ([], ["Which mice sleep longest?"], ["What data are used?"]):
        (finding,) = absence_findings(text, needs)
        assert (finding.rule, finding.severity, finding.span) == ("absence-unsearched", "warning", (0, len(text)))


def test_reading_takes_time_linear_in_the_text() -> None:
    for unit in ("the library ", "no source ", "not reported in the ", "no a "):
        started = time.perf_counter()
        absence_findings(unit * 20_000, ["x"])
        assert time.perf_counter() - started < 20
