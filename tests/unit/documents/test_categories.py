"""Headings of real papers, labelled by hand (headings.tsv), and usual ones in other languages.

Of headings.tsv the first 147 were labelled before the classifier was written, the last 24 after reading what it had
made of all 1,650 headings of the 57 papers: those it had got wrong, and some of their kind. Those of
headings_other_languages.tsv were labelled before any other language than English was known.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from citeloom.documents.categories import SectionClass, classify_section, is_reviewer_letter
from citeloom.documents.types import Category

# Labelled by the text under them; their words alone do not tell.
BEYOND_WORDS = {"Multiscale Graphical Lasso", "Spatial co-occurrence", "Project Overview"}
BODY = {Category.INTRODUCTION, Category.METHOD, Category.EVALUATION}


def labelled(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def placed(row: dict[str, str]) -> SectionClass:
    """Walk down the labelled ancestors as the parser does."""
    above: list[SectionClass] = []
    level = int(row["level"])
    ancestors = [title for title in row["ancestors"].split(" > ") if title]
    for depth, title in enumerate(ancestors):
        above.append(classify_section(title, max(1, level - len(ancestors) + depth), above))
    # An abstract or summary far down comes after the body has begun.
    return classify_section(row["title"], level, above, body_begun=bool(above) and above[0].category in BODY)


@pytest.mark.parametrize(
    "row", labelled("headings.tsv"), ids=lambda row: f"{row['ancestors'][-30:]}>{row['title'][:40]}"
)
def test_a_heading_is_classified_as_labelled(row: dict[str, str]) -> None:
    placement = placed(row)
    if row["title"].split(" {")[0] in BEYOND_WORDS:
        assert placement == SectionClass(Category.OTHER)
        return
    assert (placement.category.name, placement.searchable) == (row["category"], row["searchable"] == "yes")


@pytest.mark.parametrize("row", labelled("headings_other_languages.tsv"), ids=lambda row: row["title"])
def test_a_heading_in_another_language_is_classified_as_labelled(row: dict[str, str]) -> None:
    placement = placed(row)
    assert (placement.category.name, placement.searchable) == (row["category"], row["searchable"] == "yes")


@pytest.mark.parametrize("title", ["Resume the run", "Methoden Inc.", "Et al.", "E. coli", "Literatur und Leben", "と"])
def test_a_word_in_another_language_is_not_a_standard_section(title: str) -> None:
    assert classify_section(title, 2) in {SectionClass(Category.OTHER), SectionClass(Category.OTHER, searchable=True)}


@pytest.mark.parametrize(
    "title",
    [
        "Response to Reviewers",
        "# Reviewer #2".strip("# "),
        "Referee 1",
        "Reply to the referees",
        "Decision letter",
    ],
)
def test_letters_to_reviewers_are_recognised(title: str) -> None:
    assert is_reviewer_letter(title)


@pytest.mark.parametrize("title", ["Reviewing methods", "Response to treatment", "Peer review in practice", "Letters"])
def test_prose_about_reviewing_is_not_a_reviewer_letter(title: str) -> None:
    assert not is_reviewer_letter(title)


@pytest.mark.parametrize(
    ("title", "category"),
    [
        ("1. Introduction", Category.INTRODUCTION),
        ("4.1 Results", Category.EVALUATION),
        ("IV. METHODS", Category.METHOD),
        ("A. Conclusions", Category.CONCLUSION),
    ],
)
def test_numbering_does_not_hide_a_standard_section(title: str, category: Category) -> None:
    assert classify_section(title, 1).category is category


@pytest.mark.parametrize("title", ["Supplementary Tables", "Supplemental table S2", "Metagenome data set accessions"])
def test_a_list_of_tables_is_searched_only_if_it_contains_a_table(title: str) -> None:
    assert not classify_section(title, 2).searchable
    assert classify_section(title, 2, has_table=True).searchable


@pytest.mark.parametrize("title", ["Competing interests", "Author contributions", "References", "Reviewer #2 (Tables)"])
def test_a_table_in_a_section_about_people_is_not_searched(title: str) -> None:
    assert not classify_section(title, 2, has_table=True).searchable
