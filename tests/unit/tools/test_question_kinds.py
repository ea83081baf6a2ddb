"""Kinds of question, labelled before the rules were written (tests/acceptance/labels/question_kinds.tsv)."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path

import pytest

from citeloom.documents import Paper
from citeloom.documents.bibliography import read_bibliography
from citeloom.tools.question_routing import question_kind, route

LABELS = Path(__file__).parents[2] / "acceptance" / "labels" / "question_kinds.tsv"


def labelled() -> list[dict[str, str]]:
    with LABELS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@lru_cache(maxsize=1)
def real_papers(folder: Path) -> tuple[Paper, ...]:
    return tuple(read_bibliography(folder / "corpus" / "library.bib").papers.values())


def test_at_least_38_of_40_questions_get_the_right_kind() -> None:
    found = [
        question_kind(row["question"], "one_paper" if row["kind"] == "paper" else "survey") == row["kind"]
        for row in labelled()
    ]
    assert len(found) == 40 and sum(found) >= 38


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Spectral or spatial graph convolutions: how does each define one, and which should I use?", "survey"),
        ("How do k-mer sketches compare with deconvolution, what does each need, how accurate is it?", "focused"),
        ("What did each trial of vitamin D give, and to whom?", "inventory"),
        ("Trials of vitamin D: for each, the dose and the outcome", "inventory"),
    ],
)
def test_a_question_about_two_named_things_is_not_an_inventory(question: str, kind: str) -> None:
    assert question_kind(question, "survey") == kind


@pytest.mark.parametrize(
    "row", [row for row in labelled() if row["kind"] == "survey" and row["paper"]], ids=lambda row: row["paper"]
)
def test_a_question_that_resembles_a_title_is_a_survey_that_starts_there(row: dict[str, str], shared_dir: Path) -> None:
    found = route(row["question"], real_papers(shared_dir))
    assert (found.track, found.papers, found.start) == ("survey", (), (row["paper"],))


def test_a_quoted_title_and_a_title_with_its_author_name_the_paper(shared_dir: Path) -> None:
    papers = real_papers(shared_dir)
    for question in (
        "What is “The Building Blocks of Interpretability” about?",
        "What are the building blocks of interpretability in olah2018building?",
        "What does the paper The Building Blocks of Interpretability conclude?",
    ):
        assert route(question, papers).papers == ("olah2018building",), question
