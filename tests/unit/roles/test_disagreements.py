"""Pairs of findings that may disagree: the same subject, and another direction."""

from __future__ import annotations

import pytest

from citeloom.citations.checks.citation_coverage import other_side_findings
from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.roles.disagreements import find_disagreements
from citeloom.roles.protocols import Source


def source(name: str, key: str, section: str, summary: str) -> Source:
    chunk = Chunk(f"{key}:00000", key, 0, summary, section, "", Category.OTHER, 2, None, 0, len(summary), 20)
    scores = {"vector_score": 0.7, "llm_score": 0.9, "combined_score": 0.8}
    item = Evidence.of(chunk, id=name, summary=summary, start=0, end=len(summary), source_query="", **scores)
    return Source(item, Paper(key, key), summary)


NAMED = "Training lowered the rate of falls among older residents of nursing homes."
NONE = "The rate of falls among residents of nursing homes did not differ significantly between training and control."
RAISED = "Training raised the rate of falls among older residents of nursing homes."
OTHER = "The dose of iron increased the yield of rice in dry soils."

# Results of one field that differ in direction and do not disagree: another outcome, treatment, group, time or dose.
APART = (
    (
        "Varenicline raised continuous abstinence among adult smokers at 12 weeks (44% against 18%).",
        "Adult smokers who took varenicline reported less craving and weaker withdrawal than with placebo.",
    ),
    (
        "Text messages raised abstinence of young smokers at 4 weeks (15% against 5%).",
        "Text messages did not raise abstinence of young smokers at 26 weeks (9% against 8%).",
    ),
    (
        "Among pregnant smokers, financial incentives raised abstinence at the end of pregnancy.",
        "Among hospital patients who smoke, counselling did not raise abstinence after discharge.",
    ),
    (
        "Dexmedetomidine lowered heart rate during surgery of older patients.",
        "Fentanyl did not change heart rate during surgery of older patients.",
    ),
    (
        "A dose of 50 mg reduced pain after knee surgery of adults.",
        "A dose of 25 mg did not reduce pain after knee surgery of adults.",
    ),
    (
        "GRU-D had a higher AUC than logistic regression for mortality on MIMIC.",
        "Transformers had a lower AUC than logistic regression for mortality on MIMIC.",
    ),
)
ALIKE = (
    (
        "Text messages raised abstinence of young smokers at 26 weeks (15% against 5%).",
        "Abstinence of young smokers at 26 weeks did not differ significantly with text messages (9% against 8%).",
    ),
    (
        "Calibration lowered the error of the sensor for new wearers.",
        "For new wearers the error of the sensor was higher after calibration.",
    ),
    (
        "Iron supplements increased haemoglobin of pregnant women.",
        "There was no effect of iron supplements on haemoglobin of pregnant women.",
    ),
)


@pytest.mark.parametrize("keys", [("a", "a"), ("a", "b")])
@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_opposite_results_for_one_outcome_and_comparison_are_a_pair(
    first: str, second: str, keys: tuple[str, str]
) -> None:
    sources = [source("E1", keys[0], "Abstract", first), source("E2", keys[1], "Results", second)]
    assert [pair.first.evidence.id for pair in find_disagreements(sources)] == ["E1"]


@pytest.mark.parametrize(
    ("first", "second", "keys", "lines"),
    [
        (NAMED, NONE, ("a", "a"), ["[E1] and [E2] (one paper, Abstract against Results)"]),
        (NAMED, RAISED, ("a", "b"), ["[E1] and [E2] (two papers)"]),
        (NAMED, OTHER, ("a", "b"), []),
        (NAMED, NAMED, ("a", "b"), []),
        *((first, second, ("a", "b"), []) for first, second in APART),
        *((first, second, ("a", "a"), []) for first, second in APART),
    ],
)
def test_a_pair_is_reported_if_directions_differ_for_one_subject(
    first: str, second: str, keys: tuple[str, str], lines: list[str]
) -> None:
    pairs = find_disagreements([source("E1", keys[0], "Abstract", first), source("E2", keys[1], "Results", second)])
    assert [pair.line for pair in pairs] == lines


@pytest.mark.parametrize(
    ("text", "second", "rules"),
    [
        ("Training lowers falls [E1].", NONE, ["other-side-unsaid"]),
        ("Training lowers falls [E1]. It did not differ significantly [E2].", NONE, []),
        ("Training lowers falls [E1].", RAISED, []),
        ("The training took an hour a week [E1].", NONE, []),
    ],
)
def test_a_draft_that_cites_only_one_side_of_a_paper_gets_a_finding(text: str, second: str, rules: list[str]) -> None:
    sources = [source("E1", "a", "Abstract", NAMED), source("E2", "a", "Results", second)]
    assert [finding.rule for finding in other_side_findings(text, sources)] == rules
