"""Repaired words, structure from font sizes, and the page of a quote."""

from __future__ import annotations

import pytest

from citeloom.documents import Category, Chunk, Evidence
from citeloom.documents.pdf.dehyphenation import (
    Hyphens,
    find_damaged_words,
    join_runs,
    lacks_ligatures,
    plain,
    repair_words,
)
from citeloom.documents.pdf.lines import Line
from citeloom.documents.pdf.reader import read_metadata, structure, to_parsed_paper


@pytest.mark.parametrize(
    ("left", "right", "whole"),
    [
        ("prone to hal-", "lucination and more", "prone to hallucination and more"),
        ("a broadly-", "defined disease", "a broadly-defined disease"),  # both are words of the text
        ("a well-", "known fact", "a well-known fact"),  # so it stands elsewhere
        ("non-", "European cohorts", "non-European cohorts"),
        ("the end", "of it", "the end of it"),
        ("pages 3-", "5 show", "pages 3-5 show"),
        ("see https://example.org/", "page", "see https://example.org/page"),
    ],
)
def test_words_hyphenated_at_line_ends_are_joined(left: str, right: str, whole: str) -> None:
    hyphens = Hyphens(["It is broadly said and defined as well-known.", left, right])
    assert hyphens.join(left, right) == whole


@pytest.mark.parametrize(
    ("left", "right", "gap", "whole"),
    [
        ("pro", "ling methods", 0.59, "profiling methods"),
        ("speci", "cally", 0.59, "specifically"),
        ("re", "ects", 0.59, "reflects"),
        ("in", "uence", 0.59, "influence"),
        ("con", "ict", 0.59, "conflict"),
        ("work", "ow", 0.59, "workflow"),
        ("classi", "er", 0.59, "classifier"),
        ("modi", "ed", 0.59, "modified"),
        ("di", "erent", 0.67, "different"),
        ("e", "cient", 0.92, "efficient"),
        ("shu", "ing", 0.92, "shuffling"),
        ("tradeo", " between", 0.67, "tradeoff between"),
        ("to ", "nd", 0.59, "to find"),
        ("two", "words", 0.27, "two words"),
        ("one", "word", 0.02, "oneword"),
        ("Figure", "1", 0.59, "Figure 1"),
    ],
)
def test_ligatures_without_a_mapping_are_restored(left: str, right: str, gap: float, whole: str) -> None:
    assert join_runs(left, right, gap, lost=True) == whole


def test_words_are_left_alone_if_no_ligature_is_missing() -> None:
    assert join_runs("pro", "ling", 0.59, lost=False) == "pro ling"
    assert not lacks_ligatures(["the first " * 1000])
    assert not lacks_ligatures(["short"])
    assert lacks_ligatures(["the rst " * 1000])
    assert lacks_ligatures(["the rst " * 1000, "one word in another font: classification"])


def test_words_damaged_inside_a_run_are_repaired_from_the_same_words_elsewhere() -> None:
    mended = find_damaged_words(
        ["A different flow was first found efficient, flowing", "Dierent, rst, ow, owing, ecient"]
    )
    assert mended == {"dierent": "different", "rst": "first", "ecient": "efficient"}
    assert repair_words("Dierent sizes, ecient and owing", mended) == "Different sizes, efficient and owing"
    assert repair_words("dierent", {}) == "dierent"


def test_compatibility_letters_and_soft_hyphens_are_normalised() -> None:
    assert plain("ﬁne co\u00adop x²") == "fine coop x2"


def lines(*rows: tuple[int, float, float, bool, str], start: float = 700.0) -> list[Line]:
    """Lines of 10-point type one below the other; (page, gap above, size, bold, text)."""
    found: list[Line] = []
    y, page = start, 0
    for number, gap, size, bold, text in rows:
        y = start if number != page else y - gap
        page = number
        found.append(Line(number, 72, y, 72 + 5 * len(text), size, bold, text))
    return found


BODY = "The engine was run for many hours and its cards were read one after the other, and"


def test_sections_pages_and_names_are_read() -> None:
    read = structure(
        lines(
            (0, 0, 18, False, "Looms and Engines"),
            (0, 30, 10, True, "Ada Lovelace"),
            (0, 30, 12, True, "Abstract"),
            (0, 20, 10, False, BODY),
            (0, 12, 10, False, "it stopped."),
            (0, 30, 12, True, "1 Introduction"),
            (0, 20, 10, False, BODY),
            (0, 12, 10, False, "nobody has ever said why it should not be"),
            (1, 0, 10, False, "run again. " + BODY + " so on."),
            (1, 30, 11, True, "1.1 Cards"),
            (1, 20, 10, False, BODY + " so on."),
            (1, 12, 10, False, BODY + " so on."),
        ),
        3,
    )
    paper = to_parsed_paper(read)
    assert paper.title == "Looms and Engines"
    assert [(s.title, s.level, s.category, s.searchable) for s in paper.sections] == [
        ("Looms and Engines", 1, Category.INTRODUCTION, False),
        ("Abstract", 2, Category.ABSTRACT, True),
        ("1 Introduction", 2, Category.INTRODUCTION, True),
        ("1.1 Cards", 3, Category.INTRODUCTION, True),
    ]
    whole = paper.text.index("should not be run again")
    assert (paper.page_at(whole), paper.page_at(paper.text.index("run again"))) == (1, 2)
    assert len(paper.page_starts) == 3 and paper.page_starts[2] == len(paper.text)


def test_a_letter_numbers_a_heading_only_next_to_its_neighbour() -> None:
    def levels(*titles: str) -> list[int]:
        rows = [row for title in titles for row in ((0, 30, 12, True, title), (0, 20, 10, False, BODY + " so on."))]
        sized = [(0, 30, 14, True, "1 Introduction"), (0, 20, 10, False, BODY + " so on."), *rows]
        return [level for _, level, *_ in structure(lines(*sized), 1).headings[1:]]

    assert levels("Looms in use", "A simple example") == [3, 3]
    assert levels("A Proofs of it", "B Data used", "A.1 Cards") == [2, 2, 3]
    assert levels("Appendix A Proofs", "Appendix B. Data") == [2, 2]


def test_a_heading_of_two_lines_may_continue_with_an_article() -> None:
    read = structure(
        lines(
            (0, 0, 12, True, "1 The loom as"),
            (0, 14, 12, True, "A simple engine of"),
            (0, 14, 12, True, "a kind"),
            (0, 20, 10, False, BODY + " so on."),
        ),
        1,
    )
    assert [title for title, *_ in read.headings] == ["1 The loom as A simple engine of a kind"]


def test_numbers_along_an_axis_are_not_text() -> None:
    rows = [(0, 20, 10, False, text) for text in (BODY + " so on.", "0 100 200 300", "Y 0.0 Y −0.5", "t = 4 5")]
    spaced = [(page, 40, size, bold, text) for page, _, size, bold, text in rows]
    read = structure(lines(*spaced), 1)
    assert [read.text[start:end] for _, start, end in read.blocks] == [BODY + " so on.", "t = 4 5"]


def test_a_quote_is_cited_by_the_page_where_it_starts() -> None:
    chunk = Chunk("k:00000", "k", 0, "One. Two. Three.", "s", "", Category.OTHER, 1, 4, 0, 16, 9, page_breaks=(5, 5))
    assert [chunk.page_at(offset) for offset in (0, 4, 5, 15)] == [4, 4, 6, 6]
    scores = {"vector_score": 1.0, "llm_score": 1.0, "combined_score": 1.0}
    evidence = Evidence.of(chunk, id="E1", summary="", start=5, end=9, source_query="", **scores)
    assert (evidence.quote, evidence.page) == ("Two.", 6)


@pytest.mark.parametrize(
    ("title", "read"),
    [
        (b"(Network Methods \\(old\\) for Omics)", "Network Methods (old) for Omics"),
        (b"<FEFF004C006F006F006D007300200061006E00640020006D006F00720065>", "Looms and more"),
        (b"(The \\215quoted\\216 loom)", "The \u201cquoted\u201d loom"),
        (b"(Microsoft Word - draft.doc)", ""),
        (b"(paper_final2.pdf)", ""),
        (b"()", ""),
    ],
)
def test_the_title_of_the_document_is_read(title: bytes, read: str) -> None:
    parts = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
        b"<</Title " + title + b"/Author(Ada Lovelace)>>",
    )
    objects = b"".join(b"%d 0 obj\n%s\nendobj\n" % item for item in enumerate(parts, 1))
    data = b"%PDF-1.4\n" + objects + b"trailer <</Root 1 0 R/Info 4 0 R>>\n%%EOF"
    assert read_metadata(data) == (read, "Ada Lovelace")
