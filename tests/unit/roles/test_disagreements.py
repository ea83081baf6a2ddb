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


@pytest.mark.parametrize(
    ("first", "second", "keys", "lines"),
    [
        (NAMED, NONE, ("a", "a"), ["[E1] and [E2] (one paper, Abstract against Results)"]),
        (NAMED, RAISED, ("a", "b"), ["[E1] and [E2] (two papers)"]),
        (NAMED, OTHER, ("a", "b"), []),
        (NAMED, NAMED, ("a", "b"), []),
    ],
)
def test_a_pair_is_named_where_direction_differs_for_one_subject(
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
    ],
)
def test_a_draft_that_cites_one_side_of_a_paper_only_is_told_so(text: str, second: str, rules: list[str]) -> None:
    sources = [source("E1", "a", "Abstract", NAMED), source("E2", "a", "Results", second)]
    assert [finding.rule for finding in other_side_findings(text, sources)] == rules
