"""Faults of a BibTeX file's syntax are reported with line, field and remedy, and no field is lost silently."""

from __future__ import annotations

import pytest

from citeloom.documents.bibliography import parse_bibliography

TITLE = "@article{a,\n title = {One},\n"


@pytest.mark.parametrize(
    ("text", "said", "read"),
    [
        (f"{TITLE} author = {{Lee, A}}\n year = 2019\n}}", "line 3: a: author: the comma behind", ("A Lee", 2019)),
        (f'{TITLE} author = "Lee, A"\n year = {{2019}}\n}}', "line 3: a: author: the comma behind", ("A Lee", 2019)),
        (f"{TITLE} year = 2019\n author = {{Lee, A}},\n}}", "line 3: a: year: the comma behind", ("A Lee", 2019)),
        (f"{TITLE} year = {{2019}}}},\n author = {{Lee, A}}\n}}", "line 3: 'author' of the entry before", ("", 2019)),
        (f"{TITLE} author = Lee}},\n year = 2019\n}}", "line 3: 'year' of the entry before", ("Lee", None)),
        (f"{TITLE} author = Lee A,\n year = 2019\n}}", "line 3: a: author: 'A' stands behind", ("Lee A", 2019)),
        (f"{TITLE} year = 2019,\n year = 2020\n}}", "line 4: a: year is given twice", ("", 2019)),
        ("article{b,\n title={T}}\n" + TITLE + "}", "line 1: b: the @ before article is missing", ("", None)),
        (
            f'{TITLE} author = "L{{\\"e}}e" # {{, A}},\n year = 2019\n}}\n% year = x,\nNotes, year = 3\n',
            "",
            ("A Lëe", 2019),
        ),
    ],
)
def test_a_fault_that_loses_fields_is_reported_and_the_rest_is_read(
    text: str, said: str, read: tuple[str, int | None]
) -> None:
    found = parse_bibliography(text, "my.bib")
    paper = found.papers["a"]
    assert (", ".join(paper.authors), paper.year, paper.title) == (*read, "One")
    assert found.warnings == () if not said else found.warnings[-1].startswith(f"my.bib: {said}")
    assert all("\n" not in line for line in found.warnings) and not found.refused
    again = parse_bibliography(paper.bibtex, "again")  # what is written out is sound
    assert not again.warnings or "stands behind" in said
    assert again.papers["a"].year == paper.year


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@article{a\n title={T}}", "line 1: entry a lacks the comma behind its key"),
        ("@article{title={T}}", "has no key: write one and a comma before title"),
        ("@article{a,\n title={T {x},\n year=2019\n}\n", "entry a lacks a closing brace } in its field title"),
        ("@article{a, title={T}", "entry a lacks its closing brace }"),
        ("@article{a, title {T}}", "entry a lacks the = behind the name of its field title"),
        ("@article{a, title={T}, year }", "entry a lacks the = behind the name of its field year"),
        ("@article{a, title={A, {DNA} too},\n year=2019\n", "entry a lacks its closing brace }"),
        ("@article{a, title={T},, year=2019}", "entry a has a comma too many"),
        ("@misc{b}\n@misc{b}", "line 2: duplicate key b (first on line 1)"),
    ],
)
def test_an_unreadable_entry_is_refused_with_the_reason(text: str, said: str) -> None:
    (refused,) = parse_bibliography(text, "my.bib").refused
    assert said in refused.reason and "\n" not in refused.reason


@pytest.mark.parametrize(
    ("year", "wrong"), [("{205}", True), ("20204", True), ("{in press}", False), ("{2020a}", True)]
)
def test_an_unreadable_year_is_reported(year: str, wrong: bool) -> None:
    found = parse_bibliography(f"{TITLE} year = {year}\n}}", "my.bib")
    assert [line.partition(" not a year")[0] for line in found.warnings] == ["my.bib: line 1: a: year:"] * wrong
