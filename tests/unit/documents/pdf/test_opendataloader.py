"""A paper from the JSON of opendataloader-pdf: levels, pages, tables, and what is kept out of the text."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from citeloom.documents.markdown import ParsedPaper
from citeloom.documents.pdf import PdfText
from citeloom.documents.pdf.opendataloader import text_of
from citeloom.documents.pdf.parsed import parsed_pdf

FROM_TYPE = "largest line of the first page"
_heights = count(700, -1)


def element(
    kind: str, page: int, content: str, *, size: float = 10, font: str = "Serif", **more: Any
) -> dict[str, Any]:
    """Below the one that was made before it."""
    height = next(_heights)
    box = [50, height, 500, height + 1]
    return {
        "type": kind,
        "page number": page,
        "bounding box": box,
        "font": font,
        "font size": size,
        "content": content,
        **more,
    }


def heading(page: int, content: str, level: int, size: float = 14) -> dict[str, Any]:
    return element("heading", page, content, size=size, font="Serif-Bold", **{"heading level": level})


def paragraph(page: int, content: str, **more: Any) -> dict[str, Any]:
    return element("paragraph", page, content, **more)


def table(page: int, rows: list[list[str]]) -> dict[str, Any]:
    cells = [
        [
            {"type": "table cell", "column number": number, "kids": [paragraph(page, text)] if text else []}
            for number, text in enumerate(row, 1)
        ]
        for row in rows
    ]
    made = [{"type": "table row", "cells": row} for row in cells]
    return {
        "type": "table",
        "page number": page,
        "bounding box": [50, 300, 500, 400],
        "number of columns": len(rows[0]),
        "rows": made,
    }


def own(pages: int, text: str = "", title: str = "", source: str = FROM_TYPE) -> PdfText:
    """What our own reading says of the same file."""
    return PdfText(text, [], [], [0] * pages, title, source, False, doi="10.1234/looms")


def read(pages: int, *kids: dict[str, Any], text: str = "", title: str = "", source: str = FROM_TYPE) -> ParsedPaper:
    return parsed_pdf(text_of({"number of pages": pages, "kids": list(kids)}, own(pages, text, title, source)))


TITLE = heading(1, "Looms and the people who mend them", 1, 20)
ABSTRACT = heading(1, "Abstract", 2)
PROSE = paragraph(1, "We count threads in looms of every age and say which ones are worth mending.")


def levels(paper: ParsedPaper) -> list[tuple[str, int]]:
    return [(section.title, section.level) for section in paper.sections if section.title]


def test_levels_are_those_of_the_program_without_holes() -> None:
    paper = read(
        2, TITLE, ABSTRACT, PROSE, heading(1, "Threads", 2), heading(1, "Silk", 9), heading(2, "Wool", 9),
        heading(2, "Merino", 11), PROSE, heading(2, "What follows", 2), PROSE,
    )  # fmt: skip
    assert levels(paper) == [
        ("Looms and the people who mend them", 1),
        ("Abstract", 2),
        ("Threads", 2),
        ("Silk", 3),
        ("Wool", 3),
        ("Merino", 4),
        ("What follows", 2),
    ]
    assert paper.title == "Looms and the people who mend them" and paper.front_matter.doi == "10.1234/looms"


def test_numbers_say_the_level_between_labels_of_figures() -> None:
    kids = [heading(1, "3 Threads", 3), heading(1, "3.1 Silk", 9), heading(2, "Grid of looms", 7), PROSE]
    paper = read(2, TITLE, ABSTRACT, PROSE, *kids, heading(2, "3.2 Wool", 9), PROSE)
    assert dict(levels(paper))["3.2 Wool"] == dict(levels(paper))["3.1 Silk"] == 3


def test_names_captions_and_entries_of_the_references_are_no_headings() -> None:
    paper = read(
        2, TITLE, heading(1, "Ada Weaver", 4), paragraph(1, "Department of Looms"), ABSTRACT, PROSE,
        heading(1, "Figure 1: Looms by age", 5), heading(2, "Data", 2), PROSE, heading(2, "References", 2),
        heading(2, "On the Weaving of Wool", 5), paragraph(2, "A. Weaver, 1990."),
    )  # fmt: skip
    assert [title for title, _ in levels(paper)[1:]] == ["Abstract", "Data", "References"]
    searched = "".join(paper.text[part.start : part.end] for part in paper.sections if part.searchable)
    assert "worth mending" in searched and "Looms by age" in searched
    assert "Ada Weaver" not in searched and "On the Weaving of Wool" not in searched


def test_every_character_has_its_page_also_across_a_cut_paragraph() -> None:
    first = paragraph(
        1, "The oldest of the looms that we have found in the valley still weaves a won-\nderful cloth of"
    )
    second = paragraph(2, "wool that keeps its colour for years.")
    paper = read(3, TITLE, ABSTRACT, first, second, paragraph(3, "It was sold in the end, to a museum."))
    assert "still weaves a wonderful cloth of wool that keeps" in paper.text
    starts = [paper.text.index(words) for words in ("Looms and", "wool that keeps", "It was sold")]
    assert list(paper.page_starts[1:]) == starts[1:]


def test_what_pages_repeat_at_their_edges_is_left_out() -> None:
    prose = ["Alder looms are old.", "Birch looms are new.", "Cedar looms are rare."]
    kids = [
        made
        for page, words in enumerate(prose, 1)
        for made in (paragraph(page, f"Weaver, page {page} of 3"), paragraph(page, words), paragraph(page, str(page)))
    ]
    assert read(3, *kids).text == "\n\n".join(prose)


def test_a_table_stays_a_table_and_boxed_text_becomes_text() -> None:
    rows = [["Loom", "Threads"], ["Alder | old", "120"], ["Birch", ""]]
    paper = read(
        1, TITLE, ABSTRACT, PROSE, table(1, rows), table(1, [["The looms of the valley " * 20, "x"], ["", "y"]])
    )
    assert "| Loom | Threads |\n|---|---|\n| Alder \\| old | 120 |\n| Birch |  |" in paper.text
    assert [block.kind for block in paper.blocks].count("table") == 1
    assert "The looms of the valley The looms" in paper.text


def test_items_of_lists_and_code_keep_their_lines() -> None:
    inner = {"type": "list", "list items": [element("list item", 2, "• with a warp", kids=[])]}
    items = [
        element("list item", 1, "• looms that are\nold", kids=[inner]),
        element("list item", 2, "• ﬁne wool", kids=[]),
    ]
    listed = {"type": "list", "page number": 1, "list items": items}
    code = paragraph(2, "warp <- 3\nweave(warp)", font="SourceCodePro-Regular")
    paper = read(2, TITLE, ABSTRACT, PROSE, listed, code)
    assert "• looms that are old\n\n• with a warp\n\n• fine wool\n\nwarp <- 3\nweave(warp)" in paper.text
    assert paper.text[paper.page_starts[1] :].startswith("• with a warp")
    assert [block.kind for block in paper.blocks][-1] == "code"


def test_words_that_lost_a_ligature_are_as_our_own_reading_has_them() -> None:
    filler = " ".join(["The looms were counted and the threads were measured again."] * 60)
    damaged = paragraph(1, f"{filler} A dicult case is xed on the nal day.")
    paper = read(1, TITLE, ABSTRACT, damaged, text="A difficult case is fixed on the final day.")
    assert paper.text.endswith("A difficult case is fixed on the final day.")


@pytest.mark.parametrize(
    ("metadata", "title"), [("Looms, a metadata title", "Looms, a metadata title"), ("", TITLE["content"])]
)
def test_the_title_of_the_metadata_goes_first(metadata: str, title: str) -> None:
    source = "metadata of the PDF" if metadata else FROM_TYPE
    assert read(1, TITLE, ABSTRACT, PROSE, title=metadata, source=source).title == title


def test_nothing_but_headings_is_no_paper() -> None:
    with pytest.raises(ValueError, match="no text"):
        read(1, TITLE)
