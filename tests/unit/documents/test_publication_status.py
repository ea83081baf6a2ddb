"""What a reader learns about retractions, concerns and corrections."""

from __future__ import annotations

import pytest

from citeloom.documents.publication_status import Notice, PublicationStatus, Version, notice_kind

RETRACTION = Notice("retraction", "Crossref", "10.5555/n", "2020-06-04")


@pytest.mark.parametrize(
    ("notices", "label"),
    [
        ((), ""),
        ((RETRACTION,), "retracted"),
        ((RETRACTION, Notice("reinstatement", "Retraction Watch", date="2021-01-01")), "reinstated"),
        ((Notice("reinstatement", "x", date="2019-01-01"), RETRACTION), "retracted"),
        ((Notice("retraction", "OpenAlex"), Notice("reinstatement", "x", date="2021-01-01")), "reinstated"),
        ((Notice("correction", "x"), Notice("expression_of_concern", "x")), "expression of concern"),
        ((Notice("correction", "x"),), "corrected"),
    ],
)
def test_the_most_serious_notice_becomes_the_label(notices: tuple[Notice, ...], label: str) -> None:
    assert PublicationStatus(notices).label == label


def test_reports_of_one_notice_are_one_line() -> None:
    again = Notice("retraction", "Retraction Watch", "10.5555/n", "2020-06-04", "Error in Data")
    flag = Notice("retraction", "OpenAlex")
    assert PublicationStatus((flag, again, RETRACTION)).lines() == [
        "Retracted on 2020-06-04 (Crossref, Retraction Watch, OpenAlex): https://doi.org/10.5555/n; Error in Data"
    ]


def test_several_notices_are_listed_by_date() -> None:
    concern = Notice("expression_of_concern", "Crossref", "10.5555/c", "2019-02")
    status = PublicationStatus((RETRACTION, concern), (Version("preprint", "10.5555/p", "Crossref"),))
    assert status.lines() == [
        "Expression of concern in 2019-02 (Crossref): https://doi.org/10.5555/c",
        "Retracted on 2020-06-04 (Crossref): https://doi.org/10.5555/n",
        "Preprint of it: https://doi.org/10.5555/p (Crossref)",
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Retraction", "retraction"),
        ("expression_of_concern", "expression_of_concern"),
        ("Expression of concern", "expression_of_concern"),
        ("withdrawal", "retraction"),
        ("Corrigendum", "correction"),
        ("Reinstatement", "reinstatement"),
        ("new_edition", None),
        ("", None),
    ],
)
def test_the_kind_of_a_notice_is_read_from_each_source(name: str, kind: str | None) -> None:
    assert notice_kind(name) == kind
