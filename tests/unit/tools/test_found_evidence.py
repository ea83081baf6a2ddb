"""Which findings are kept: the most quantitative first, and a result stated twice as one."""

from __future__ import annotations

import pytest

from citeloom.documents import Category, Chunk, Paper
from citeloom.roles.protocols import PassageFinding
from citeloom.tools.found_evidence import EvidenceLimits, FoundEvidence, limit_findings


def found(statement: str, index: int = 0, key: str = "p", score: float = 0.8) -> FoundEvidence:
    chunk = Chunk(
        f"{key}:{index:05d}", key, index, statement, "Results", "", Category.OTHER, 2, None, 0, len(statement), 9
    )
    finding = PassageFinding(Paper(key, key), statement, score, "N1", ((chunk, 0, len(statement)),), 0.7)
    return FoundEvidence(finding, score, "q")


BARE = "Coated implants loosened less often than bare implants in the older patients of the trial."
FULL = "Coated implants loosened less often than bare implants (4% of 112 against 9% of 108 older patients, p = 0.03)."


def test_a_result_stated_twice_in_a_paper_is_one_finding_with_both_quotes() -> None:
    (kept,) = limit_findings([found(BARE, 0, score=0.9), found(FULL, 5)], EvidenceLimits())
    assert kept.finding.statement == FULL
    assert [chunk.index for chunk, _, _ in kept.finding.spans] == [0, 5]


def test_a_reworded_result_with_the_same_numbers_is_not_a_second_finding() -> None:
    short = "Loosening was less frequent with coated implants in the trial: 4% of 112 against 9% of 108."
    (kept,) = limit_findings([found(FULL, 0, score=0.9), found(short, 5)], EvidenceLimits())
    assert kept.finding.statement == FULL and len(kept.finding.spans) == 2


@pytest.mark.parametrize(
    "other", [found(FULL.replace("9%", "8%"), 5), found(FULL, 5, "q"), found(FULL.replace("less", "more"), 5)]
)
def test_findings_with_other_numbers_papers_or_directions_stay_apart(other: FoundEvidence) -> None:
    assert len(limit_findings([found(FULL), other], EvidenceLimits())) == 2


def test_of_equal_findings_the_one_with_effect_size_and_test_comes_first() -> None:
    other = found("Coated implants were easier to place, surgeons said.", 1, score=0.85)
    first, _ = limit_findings([other, found(FULL, 5)], EvidenceLimits())
    assert first.finding.statement == FULL
