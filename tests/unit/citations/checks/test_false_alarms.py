"""False alarms in answers by a careful reader, and similar real faults that must still be found."""

from __future__ import annotations

import pytest

from citeloom.citations.checks.citation_coverage import unsupported_findings
from citeloom.citations.checks.fabricated_citations import find_fabricated
from citeloom.citations.checks.number_parsing import claimed_numbers


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        ("Division was slower on days 2–9.", []),
        ("It fell from gpt-4-0613 to gpt-3.5-turbo-0125.", []),
        ("Top-5 accuracy rose 10-fold in 3-year-olds.", ["5", "10", "3"]),
        ("It took 9 days.", ["9"]),
    ],
)
def test_a_number_inside_a_name_or_label_is_not_checked(text: str, claimed: list[str]) -> None:
    assert [text[number.start : number.end] for number in claimed_numbers(text)] == claimed


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("TP53 told them apart (HR 2003, 95% CI 9.9 to 4.05e5) [E1].", []),
        ("One strain was grown (strain CDC1551; 25 macrophages) [E1].", []),
        ("It held elsewhere (WHO 2003) [E1].", ["(WHO 2003)"]),
        ("It held elsewhere (Hart 2003, 12) [E1].", ["(Hart 2003, 12)"]),
    ],
)
def test_a_hazard_ratio_and_a_strain_are_not_citations(text: str, foreign: list[str]) -> None:
    assert [text[item.start : item.end] for item in find_fabricated(text)] == foreign


@pytest.mark.parametrize(
    ("text", "flagged"),
    [
        ("- *Metrics.* Purity was 96% [E1].", False),
        ("- **TP53 loss.** Purity was 96% [E1].", False),
        ("*Statins halve the risk.* Purity was 96% [E1].", True),
    ],
)
def test_a_label_before_a_cited_sentence_needs_no_source(text: str, flagged: bool) -> None:
    assert bool(unsupported_findings(text)) is flagged
