"""Text in quotation marks belongs to the source: no check changes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from citeloom.citations.checks.draft_checks import check_draft, replace_invalid_citations
from citeloom.citations.checks.findings import Finding
from citeloom.citations.citation_styles import missing_marks
from citeloom.citations.markers import verbatim_spans
from citeloom.citations.user_citations import with_literal_quotes
from citeloom.experiment import Experiment
from citeloom.roles.protocols import Draft
from tests.support.citation_samples import make_source

SAID = (
    "Adaptive intervals keep their coverage under shift (Gibbs and Candès 2022) and follow Smith et al. [12], "
    "as in https://doi.org/10.1000/xyz and in smith2020deep. Levels of estradiol (E3) rose by 4%, "
    "which nobody had **expected**."
)
SOURCES = (replace(make_source("E3"), text=SAID), make_source("E4", "lee2022ten", ("Lee", "Gitter"), year=2022))


@pytest.mark.parametrize(
    "draft",
    [
        'It reports: "Adaptive intervals keep their coverage under shift (Gibbs and Candès 2022)" [E3].',
        "It reports: “keep their coverage under shift (Gibbs and Candès 2022) and follow Smith et al. [12]” [E3].",
        "It reports: «follow Smith et al. [12], as in https://doi.org/10.1000/xyz and in smith2020deep» [E3].",
        'It reports: "… keep their coverage … follow Smith et al. [12], as in …" [E3].',
        "> Adaptive intervals keep their coverage under shift (Gibbs and Candès 2022) [E3].",
        'It reports: "[a]daptive intervals keep their\ncoverage under shift (Gibbs and Candès 2022)." [E3]',
    ],
)
def test_a_verbatim_quote_keeps_its_citations(draft: str) -> None:
    text, findings = replace_invalid_citations(draft, SOURCES, "")
    assert "citation needed" not in text
    assert not findings
    found = check_draft(Draft(draft), SOURCES, kind=None, experiment=Experiment())
    assert "foreign-citation" not in {finding.rule for finding in found}


@pytest.mark.parametrize(
    "draft",
    [
        # Not the words of the source.
        'It reports: "Adaptive intervals lose all their coverage under shift (Gibbs and Candès 2022)" [E3].',
        # A citation and nothing else is not a quote.
        'Coverage is kept "(Gibbs and Candès 2022)" [E3].',
        # Beside the quote.
        'It reports: "Adaptive intervals keep their coverage under shift" (Gibbs and Candès 2022) [E3].',
        # The source's words, and more.
        'It reports: "keep their coverage under shift (Gibbs and Candès 2022; Made 2021)" [E3].',
    ],
)
def test_text_that_is_not_a_verbatim_quote_is_checked(draft: str) -> None:
    text, findings = replace_invalid_citations(draft, SOURCES, "")
    assert "[citation needed]" in text
    assert findings


def test_a_name_in_a_quote_that_looks_like_a_marker_is_not_one() -> None:
    draft = 'It found that "levels of estradiol (E3) rose by 4%" (E4).'
    text, findings = replace_invalid_citations(with_literal_quotes(draft, [SAID]), SOURCES, "")
    assert not findings
    assert text.endswith(" [E4].")
    assert "[E3]" not in text


def test_symbols_and_numbers_must_match_in_a_quote() -> None:
    assert verbatim_spans('It says "levels of estradiol (E3) rose by 4%".', [SAID])
    assert not verbatim_spans('It says "levels of estradiol (E3) rose by 14%".', [SAID])
    assert not verbatim_spans('It says "levels of estradiol (E3) rose by 4".', ["levels of estradiol (E3) rose by 0.4"])


def test_no_mark_is_inserted_into_a_quote() -> None:
    text = "Er schreibt: „Alles wächst. Nichts bleibt.“ Das gilt."
    first = text.index("Nichts")
    marks = missing_marks(
        text,
        [
            Finding("unsupported", "why", (text.index("Alles"), first - 1)),
        ],
    )
    assert [mark.position for mark in marks] == [text.index(" Das")]
