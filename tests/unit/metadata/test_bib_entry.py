"""Entries are completed with what they lack, and nothing that the user wrote is replaced."""

from __future__ import annotations

import pytest

from citeloom.documents.bibliography import parse_bibliography
from citeloom.metadata.bib_entry import complete_paper
from citeloom.metadata.enriching import StoredMetadata, differing_fields, missing_fields
from citeloom.stores.metadata_store import ServiceStatement

KNOWN = StoredMetadata(
    "10.5555/looms",
    tuple(
        ServiceStatement(name, "Crossref", value, 0.0)
        for name, value in (("volume", "12"), ("issue", "3"), ("pages", "1-9"), ("venue", "Looms & Threads"))
    ),
)

ENTRIES = {
    "with a comma at its end": "@article{ada2020,\n  title = {{Looms}},\n  author = {Lovelace, Ada},\n}",
    "without one": '@article{ada2020, title = "Looms"}',
    "in parentheses": "@article(ada2020, title = {Looms})",
    "without fields": "@article{ada2020}",
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_missing_fields_are_added_at_the_end(entry: str) -> None:
    paper = parse_bibliography(entry, source="made").papers["ada2020"]
    made = complete_paper(paper, KNOWN)
    assert made.bibtex.startswith(entry.rstrip("})\n, "))
    again = parse_bibliography(made.bibtex, source="made").papers["ada2020"]
    assert (again.doi, again.venue, again.title) == ("10.5555/looms", "Looms & Threads", paper.title)
    assert "volume = {12}" in made.bibtex and "pages = {1--9}" in made.bibtex and "number = {3}" in made.bibtex


def test_fields_written_by_the_user_are_not_added_again() -> None:
    entry = (
        "@article{ada2020,\n  journal = {Mine},\n  Volume = 7,\n  number={1}, pages = {5},\n  doi = {10.5555/mine},\n}"
    )
    paper = parse_bibliography(entry, source="made").papers["ada2020"]
    statements = [
        ServiceStatement(name, "Crossref", value, 0.0)
        for name, value in (("venue", "Other"), ("volume", "12"), ("issue", "3"), ("pages", "1-9"))
    ]
    filled = missing_fields(paper, statements)
    assert filled == []
    assert complete_paper(paper, StoredMetadata("10.5555/mine", tuple(filled))) == paper


def test_the_article_does_not_describe_its_preprint() -> None:
    paper = parse_bibliography("@misc{ada2020, title = {Looms}, doi = {10.48550/arXiv.2001.00001}}", source="m")
    statements = [
        ServiceStatement("year", "DataCite", 2020, 0.0),
        ServiceStatement("year", "Semantic Scholar", 2021, 0.0),
        ServiceStatement("volume", "Semantic Scholar", "9", 0.0),
        ServiceStatement("citations", "Semantic Scholar", 4, 0.0),
    ]
    filled = {item.field: (item.value, item.service) for item in missing_fields(paper.papers["ada2020"], statements)}
    assert filled == {"year": (2020, "DataCite"), "citations": (4, "Semantic Scholar")}


@pytest.mark.parametrize(
    ("authors", "differs"),
    [
        ("Lovelace, Ada and others", False),
        ("Lovelace, Ada and Hopper, Grace and Noether, Emmy", False),
        ("Lovelace, Ada and Hopper, Grace", True),
        ("Hopper, Grace and others", True),
        ("A and B and C and D and others", True),
    ],
)
def test_a_shortened_list_of_authors_is_not_a_difference(authors: str, differs: bool) -> None:
    paper = parse_bibliography(f"@article{{ada2020, author = {{{authors}}}}}", source="m").papers["ada2020"]
    said = ServiceStatement("authors", "Crossref", ["Ada Lovelace", "Grace Hopper", "Emmy Noether"], 0.0)
    assert bool(differing_fields(paper, [said])) == differs
