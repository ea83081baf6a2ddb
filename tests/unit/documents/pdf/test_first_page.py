"""The abstract, authors and year of a PDF whose first page sets them in the font of the text."""

from __future__ import annotations

import pytest

from citeloom.documents import Category
from citeloom.documents.pdf.headings import confirm_authors, read_year
from citeloom.documents.pdf.lines import Line
from citeloom.documents.pdf.pages import Page, TextRun
from citeloom.documents.pdf.reader import PdfText, choose_title, structure, to_parsed_paper

ABSTRACT = "The engine was run for many hours and its cards were read one after the other, " * 4 + "until it stopped."
BODY = "Nobody has ever said why the engine should not be run again."


def page(
    *rows: tuple[float, bool, str], body: str = BODY, section: tuple[float, bool, str] = (11.0, True, "1 Introduction")
) -> PdfText:
    """A page with a title, these lines (size, bold, text) well apart, and a first section in 11-point type."""
    below = [section, *[(11.0, False, body)] * 12]
    texts = [(18.0, False, "Looms and Engines"), *rows, *below]
    return structure(
        [
            Line(0, 72, 3000 - 40.0 * row, 72 + 5 * len(text), size, bold, text)
            for row, (size, bold, text) in enumerate(texts)
        ],
        1,
    )


@pytest.mark.parametrize(
    "rows",
    [
        [(10.0, True, "Abstract"), (10.0, False, ABSTRACT)],  # smaller than the text below
        [(11.0, False, "Abstract"), (11.0, False, ABSTRACT)],
        [(11.0, False, "ABSTRACT"), (11.0, False, ABSTRACT)],
        [(9.0, False, "Abstract\u2014" + ABSTRACT)],
        [(11.0, False, "Abstract. " + ABSTRACT)],
        [(11.0, False, ABSTRACT)],
    ],
)
def test_the_abstract_is_found_under_any_heading(rows: list[tuple[float, bool, str]]) -> None:
    rest = [(11.0, False, "Keywords: looms, engines"), (12.0, False, "Contents"), (11.0, False, "1 Introduction . . 2")]
    paper = to_parsed_paper(page((11.0, False, "Ada Lovelace"), *rows, *(rest if len(rows) > 1 else [])))
    assert paper.abstract() == ABSTRACT
    searched = [section for section in paper.sections if section.searchable]
    assert [section.category for section in searched] == [Category.ABSTRACT, Category.INTRODUCTION]


def test_a_roman_number_before_capitals_is_a_heading_in_any_font() -> None:
    rows = [(11.0, False, "Ada Lovelace"), (9.0, True, "Abstract\u2014" + ABSTRACT)]
    paper = to_parsed_paper(page(*rows, section=(11.0, False, "I. INTRODUCTION")))
    assert paper.abstract() == ABSTRACT
    assert [section.title for section in paper.sections][1:] == ["Abstract", "I. INTRODUCTION"]
    assert paper.sections[2].category is Category.INTRODUCTION


@pytest.mark.parametrize(
    ("stated", "largest", "title"),
    [
        ("Looms and Engines", "Looms and Engines", "Looms and Engines"),
        ("Looms and Engines", "Looms", "Looms and Engines"),
        ("Looms and Engines", "", "Looms and Engines"),
        ("System Model", "Looms and Engines", "Looms and Engines"),
        ("[stamp-0055, v1] Looms and Engines", "Looms and Engines", "Looms and Engines"),
        ("Looms and Engines in Use", "Looms and Engnes in Ase", "Looms and Engines in Use"),  # read by OCR
        ("", "Looms and Engines1", "Looms and Engines"),
        ("", "Looms and Word2", "Looms and Word2"),
    ],
)
def test_the_title_is_the_one_printed_on_the_page(stated: str, largest: str, title: str) -> None:
    runs = [TextRun(72, 700, 200, 18, 18, True, False, text) for text in ("Looms and", "Engines", "Looms and Word2")]
    mark = TextRun(272, 705, 9, 9, 9, True, False, "1")
    page = Page(600, 800, (*runs, mark), (), 0)
    assert choose_title(stated, largest, page) == title


@pytest.mark.parametrize(
    "notice",
    ["Correspondence to ada@example.org. " + ABSTRACT, "Copyright 2020 by the authors. " + ABSTRACT, "Too short."],
)
def test_a_notice_below_the_title_is_not_an_abstract(notice: str) -> None:
    assert to_parsed_paper(page((11.0, False, "Ada Lovelace"), (11.0, False, notice))).abstract() == ""


@pytest.mark.parametrize(
    ("rows", "authors"),
    [
        (["Ada Lovelace"], ["Ada Lovelace"]),
        (
            ["Ada Lovelace1,2, Charles B. Babbage2* and Jo van der Berg"],
            ["Ada Lovelace", "Charles B. Babbage", "Jo van der Berg"],
        ),
        (
            ["Ada Lovelace", "Analytical Society, University of London", "Mary Somerville"],
            ["Ada Lovelace", "Mary Somerville"],
        ),
        (["Ada Lovelace Mary Somerville", "{ada,mary}@example.org"], ["Ada Lovelace", "Mary Somerville"]),
        (["Ada Lovelace \u262f", "0000-0002-1775-3645 \u00b7 ada"], ["Ada Lovelace"]),
        (["Ada Lovelace", "Mary (Greig) Somerville"], ["Ada Lovelace", "Mary Somerville"]),
        (["Ada Lovelace Mary Somerville"], []),  # two names or one
        (["Ada Lovelace, Mary Somerville, Jo Berg, Alexander J."], []),  # not read to its end
        (["University of London", "Updated Content", "New York, USA", "Google Research"], []),
        (["Looms and Engines"], []),
    ],
)
def test_authors_are_read_below_the_title(rows: list[str], authors: list[str]) -> None:
    assert list(page(*((12.0, False, row) for row in rows), (11.0, True, "Abstract")).authors) == authors


def test_authors_in_the_metadata_count_if_they_are_on_the_page() -> None:
    printed = "Looms and Engines Ada Lovelace 1 London Mary Somerville"
    assert confirm_authors("Ada Lovelace; Mary Somerville", printed) == ("Ada Lovelace", "Mary Somerville")
    assert confirm_authors("Ada Lovelace and Charles Babbage", printed) == ()
    assert confirm_authors("admin", printed) == confirm_authors("", printed) == ()


@pytest.mark.parametrize(
    ("printed", "year"),
    [
        ("Date published: 2024-07-18 Last modified: 2025-06-22", 2024),
        ("Published online: 3 May 2019. Received 2 May 2018", 2019),
        ("\u00a9 2021 The Authors", 2021),
        ("arXiv:2305.14627v2 [cs.CL] 31 Oct 2023", 2023),
        ("generated from lab/paper@b2b79b8 on January 17, 2022.", None),
        ("This manuscript was automatically generated from lab/paper@b2b79b8 on January 17, 2022.", 2022),
        ("was automatically generated from lab/paper@b2b79- b8 on January 17, 2022.", 2022),
        ("Journal of Looms, Volume 59, Issue 10. August 2014", 2014),
        ("as Babbage (1837) and Lovelace (1843) say", None),
    ],
)
def test_the_year_stated_on_the_first_page_is_read(printed: str, year: int | None) -> None:
    assert read_year(printed, "") == year


def test_the_only_year_below_the_title_counts() -> None:
    assert read_year("", "Ada Lovelace, London, December 2016") == 2016
    assert read_year("", "Workshop of 2016, revised 2017") is None


def test_the_date_of_a_version_is_not_the_year_if_there_is_another() -> None:
    made = "This manuscript was automatically generated from lab/paper@44 95a on December 28, 2021."
    assert read_year(made, made) == 2021
    assert read_year(made, f"Looms and Engines, in press 2018. {made}") is None
    assert read_year(f"{made} Accepted: 3 May 2018", made) == 2018
