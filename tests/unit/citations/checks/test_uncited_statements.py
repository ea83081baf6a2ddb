"""The statements of an answer: each has a source, or a mark that says that it has none."""

from __future__ import annotations

import pytest

from citeloom.citations.checks.citation_coverage import uncited_sentences, unsupported_findings
from citeloom.citations.checks.draft_checks import check_draft
from citeloom.citations.citation_styles import missing_marks
from citeloom.experiment import Experiment
from citeloom.roles.protocols import Draft
from tests.support.citation_samples import make_source

SOURCES = [make_source("E1")]
QUESTION = Experiment.model_validate({"question": "Did 42 networks suffice?"})


@pytest.mark.parametrize(
    "text",
    [
        "Degree explains most edges [E1].",
        "## What degree explains\n\nDegree explains most edges [E1].",
        "Degree explains most edges [E1]. The sources do not say for which networks.",
        "Degree explains most edges [E1]. None of the passages treats weighted networks.",
        "Degree explains most edges [E1]. Whether this holds elsewhere remains open.",
        "Is degree all there is? Degree explains most edges [E1].",
        "Two things matter:\n\n- degree explains most edges [E1]\n- it is a strong baseline [E1]",
        "**Degree**\n\nDegree explains most edges [E1].",
        "1. **Design.**\n   Degree explains most edges [E1].",
        "- **Results.** What do they add? Degree explains most edges [E1].",
        "Three trials bear on this. Degree explains most edges [E1].",
        "Several studies bear on this:\n\n- degree explains most edges [E1]",
        "The evidence comes from three trials. Degree explains most edges [E1].",
    ],
)
def test_non_statements_and_sourced_statements_are_left_alone(text: str) -> None:
    assert unsupported_findings(text) == []
    assert uncited_sentences(text, "") == []


@pytest.mark.parametrize(
    "claim",
    [
        "Three methods work.",
        "Two results fall.",
        "Several findings differ.",
        "Two lines of work fail.",
        "Both findings rest on the same paper, so statins cause strokes in all of the adults that were treated.",
        "The risk is from a single source.",
        "**Yield fell twofold in 2019.**",
        "**Statins halve the risk.**",
        "**Why not: degree explains it all and everyone has known it for years now.**",
        "The papers report no effect.",
        "This study shows no effect.",
    ],
)
def test_a_claim_phrased_as_an_introduction_or_transition_still_needs_a_source(claim: str) -> None:
    (finding,) = unsupported_findings(f"{claim} Degree explains most edges [E1].")
    assert finding.span == (0, len(claim))


@pytest.mark.parametrize(
    "text",
    ["**Sleep improved.** Why?", "**Degree.** It grows.", "Two points follow.", "Degree [E1].\n\n**Size.** Small."],
)
def test_an_introductory_sentence_without_a_cited_one_after_it_needs_a_source(text: str) -> None:
    assert unsupported_findings(text)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Paris is a city. Degree explains it [E1].", "Paris is a city [citation needed]. Degree explains it [E1]."),
        (
            "Degree explains it [E1]. It was “well known”.",
            "Degree explains it [E1]. It was “well known” [citation needed].",
        ),
        ("- degree explains it [E1]\n- so does size", "- degree explains it [E1]\n- so does size [citation needed]"),
        ("It holds\n\nDegree explains it [E1].", "It holds [citation needed]\n\nDegree explains it [E1]."),
    ],
)
def test_a_statement_without_a_source_is_marked_once(text: str, marked: str) -> None:
    found = unsupported_findings(text)
    assert [finding.rule for finding in found] == ["citation-missing"]
    (mark,) = missing_marks(text, found)
    done = f"{text[: mark.position]} {mark.words}{text[mark.position :]}"
    assert done == marked
    assert unsupported_findings(done) == []


def test_a_number_comes_from_the_question_or_the_source() -> None:
    def numbers(text: str) -> list[str]:
        found = check_draft(Draft(text), SOURCES, kind="answer", experiment=QUESTION)
        return [finding.message for finding in found if finding.rule == "number-not-found"]

    assert numbers("Of 42 networks most are explained [E1].") == []
    (message,) = numbers("Of 43 networks most are explained [E1].")
    assert "neither in the question" in message


def test_numbers_in_a_heading_are_treated_as_part_of_a_title() -> None:
    text = "## Ten tips in 2019\n\nDegree explains most edges [E1]."
    assert check_draft(Draft(text), SOURCES, kind="answer", experiment=QUESTION) == ()


def test_an_answer_that_cites_nothing_is_reported() -> None:
    rules = {finding.rule for finding in check_draft(Draft("It is so."), SOURCES, kind="answer", experiment=QUESTION)}
    assert {"no-citation", "citation-missing"} <= rules


def test_an_answer_that_declines_may_end_with_the_study_that_is_needed() -> None:
    text = (
        "Degree explains most edges, in one network [E1]. Nobody has looked at a second. "
        "The question would be answered by a randomised trial that gives networks new edges and counts them."
    )
    (finding,) = unsupported_findings(text, declined=True)
    assert text[slice(*finding.span)].startswith("Nobody has looked") and len(unsupported_findings(text)) == 2
