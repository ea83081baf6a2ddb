"""Messages about a text: without instructions to a model, and without live markup."""

from __future__ import annotations

from dataclasses import replace

import pytest

from citeloom.citations.checks.draft_checks import check_draft
from citeloom.citations.checks.findings import for_reader, for_writer
from citeloom.citations.export.report_html import doi_html
from citeloom.citations.export.section_files import comment
from citeloom.experiment import Experiment
from citeloom.roles.protocols import Draft
from tests.support.citation_samples import make_source

SOURCES = [make_source("E1")]

HINTS = ("cite only", "such as [E", "cite it as", "cite by marker", "of your own", "reword", "in your own words")


@pytest.mark.parametrize(
    "text",
    ["Seeds matter [E99].", "Seeds matter (Smith, 2020).", "Smith et al. (2020) report that 87.31% of seeds matter."],
)
def test_users_see_no_hint_meant_for_the_model_which_still_gets_it(text: str) -> None:
    found = check_draft(Draft(text), SOURCES, kind="discussion", experiment=Experiment())
    assert found
    for finding in found:
        assert not any(hint in finding.message.lower() for hint in HINTS), finding.message
        assert "[E1]" not in finding.message
    said = " ".join(for_writer(finding.as_dict()) for finding in found)
    assert "marker" in said or "leave it out" in said


def test_a_reader_sees_keys_and_pages_instead_of_markers() -> None:
    known = {"E1": replace(make_source("E1").evidence, page=4)}
    key = known["E1"].key
    known["E2"] = replace(known["E1"], id="E2", page=9)
    message = for_reader('"Seeds matter [E1][E2]." is not supported by [E1]: too few runs', known)
    assert message == f'"Seeds matter ({key})." is not supported by {key}, page 4: too few runs'
    assert for_reader('"Seeds matter [E99]." cites [E99], which is no evidence', known).count("[E99]") == 2
    again = known | {"E2": known["E1"], "E3": replace(known["E1"], page=None)}
    listed = for_reader('"Seeds matter." is only partly supported by [E1] and [E2] and [E3]: [E1], [E2] say so', again)
    assert listed == f'"Seeds matter." is only partly supported by {key}, page 4 and {key}: {key}, page 4 say so'
    assert for_reader("No quotes, and [E1]", known) == f"No quotes, and {key}, page 4"


def test_a_comparison_in_a_comment_stays_and_cannot_end_it() -> None:
    assert comment(["AUC > 0.9 in a -> b"]) == "<!--\nAUC > 0.9 in a -> b\n-->"
    for attack in ("-->", "--->", "---->", "--!>", "a--\n-->b"):
        assert comment([attack]).count("--") == 2, attack


def test_a_valid_doi_becomes_a_link_and_an_invalid_one_does_not() -> None:
    assert 'href="https://doi.org/10.1093/nar/gkab1"' in doi_html("10.1093/nar/gkab1")
    assert 'href="https://doi.org/10.1002/a%3Cb"' not in doi_html("10.1002/a<b")
    assert 'href="https://doi.org/10.1000/x(1)2"' in doi_html("https://doi.org/10.1000/x(1)2")
    for wrong in ("javascript:alert(1)", '10.1000/x" onclick="alert(1)', "10.1000/<script>", "see the paper", ""):
        assert "<a " not in doi_html(wrong) and "<script" not in doi_html(wrong)
