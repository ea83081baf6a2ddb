"""Figures and tables are found in the text by their captions, images and rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from citeloom.documents.figure_search import FoundFigure, find_figures, read_label
from citeloom.documents.markdown import parse_markdown

TABLE = "| Loom | Speed |\n|---|---|\n| A | 12.5 |\n| B | 13 |\n"
DRAWN = "![Threads of a wooden loom, seen from above.](images/loom.png){#fig:loom width=50%}"


def found_in(body: str, pages: tuple[int, ...] = ()) -> list[FoundFigure]:
    paper = replace(
        parse_markdown(f"# Looms\n\n## Results\n\nLooms weave.\n\n{body}\n\nThey weave on.\n"), page_starts=pages
    )
    found = find_figures(paper)
    for each in found:
        figure = each.figure
        if figure.start is not None and "<" not in paper.text[figure.start : figure.end]:
            assert figure.caption in " ".join(paper.text[figure.start : figure.end].replace("*", "").split())
    return found


def test_an_image_with_a_caption_is_a_figure() -> None:
    (found,) = found_in(DRAWN)
    assert (found.figure.kind, found.figure.label, found.address) == ("figure", "", "images/loom.png")
    assert found.figure.caption == "Threads of a wooden loom, seen from above."


@pytest.mark.parametrize(
    "image",
    ["![](loom.png)", '<img src="loom.png" />', '<figure>\n<img src="loom.png" />\n</figure>', "![loom](loom.png)"],
)
def test_a_numbered_caption_below_an_image_belongs_to_it(image: str) -> None:
    (found,) = found_in(f"{image}\n\n**Figure 2.** A loom in use.")
    assert (found.figure.label, found.figure.caption, found.address) == (
        "Figure 2",
        "Figure 2. A loom in use.",
        "loom.png",
    )


def test_a_figure_in_html_has_its_caption_inside() -> None:
    (found,) = found_in(
        '<figure>\n<img src="a b.png" alt="x" />\n<figcaption>Fig. 3: A <em>loom</em>.</figcaption>\n</figure>'
    )
    assert (found.figure.label, found.figure.caption, found.address) == ("Fig. 3", "Fig. 3: A loom.", "a b.png")


def test_an_embedded_image_is_addressed_by_its_data() -> None:
    address = "data:image/png;base64,iVBORw0KGgo="
    (found,) = found_in(f"![Threads of a wooden loom.]({address})")
    assert found.address == address


@pytest.mark.parametrize("caption", ["Table 4: Speeds of looms.", "Table: Speeds of looms.", ": Speeds of looms."])
@pytest.mark.parametrize("below", [False, True])
def test_a_table_has_its_caption_and_rows(caption: str, below: bool) -> None:
    (found,) = found_in(f"{TABLE}\n{caption}" if below else f"{caption}\n\n{TABLE}")
    figure = found.figure
    assert figure.kind == "table"
    assert figure.caption.endswith("Speeds of looms.")
    assert figure.body and figure.span
    assert figure.span[1] - figure.span[0] >= len(TABLE) + len(caption)


def test_a_caption_between_two_tables_belongs_where_the_paper_puts_captions() -> None:
    captions = [f"Table {number}: Speeds of looms {number}." for number in (1, 2, 3)]
    above = found_in("\n\n".join(f"{caption}\n\n{TABLE}" for caption in captions))
    below = found_in("\n\n".join(f"{TABLE}\n\n{caption}" for caption in captions))
    for found in (above, below):
        assert [each.figure.label for each in found] == ["Table 1", "Table 2", "Table 3"]
        assert all(each.figure.body for each in found)
    assert all(each.figure.start < each.figure.body[0] for each in above if each.figure.body)  # type: ignore[operator]
    assert all(each.figure.start > each.figure.body[0] for each in below if each.figure.body)  # type: ignore[operator]


def test_a_caption_alone_is_a_figure_without_an_image() -> None:
    (found,) = found_in("Figure 7: Looms weave cloth from many threads.", pages=(0,))
    assert (found.figure.label, found.figure.page, found.address) == ("Figure 7", 1, "")


@pytest.mark.parametrize(
    "no_figure",
    [
        "Figure 5 compares the looms of both towns with each other.",
        "Algorithm 1: Weave until the thread ends.",
        "Box 2: What a loom is.",
        "![](equation.png)",
        "![Loom icon](icon.png) is drawn inside of a sentence about looms and their use.",
    ],
)
def test_decorative_images_and_mentions_are_not_figures(no_figure: str) -> None:
    assert found_in(no_figure) == []


def test_a_table_of_numbers_inside_a_drawing_is_not_a_table() -> None:
    axis = "| 0 | 100 | 200 |\n|---|---|---|\n|  | Index |  |\n|  | = | 88% |\n"
    full = "| author | sum |\n|---|---|\n| Ada | 3 |\n| Bea | 4 |\n"
    assert found_in(axis, pages=(0,)) == []
    assert found_in("|---|---|", pages=(0,)) == []
    assert [each.figure.kind for each in found_in(f"{full}\n\nFigure 1: Looms weave cloth.", pages=(0,))] == ["figure"]
    assert [each.figure.kind for each in found_in(full, pages=(0,))] == ["table"]


def test_a_table_that_continues_over_a_page_break_is_one() -> None:
    paper = parse_markdown(f"# T\n\n## Results\n\nTable 1: Speeds.\n\n{TABLE}\n{TABLE}\nEnd.\n")
    second = paper.text.rindex("| Loom")
    (found,) = find_figures(replace(paper, page_starts=(0, second)))
    assert found.figure.page == 1
    assert found.figure.body == (paper.text.index("| Loom"), second + len(TABLE) - 1)


CUT = "Figure 2: A loom at work. The threads that it"


@pytest.mark.parametrize(
    ("before", "caption", "after", "joined"),
    [
        ("Looms weave.", CUT, "breaks are drawn in red.", True),
        ("Looms weave.", CUT, "Breaks are drawn in red.", False),  # a new paragraph
        ("Looms weave.", f"{CUT} breaks.", "but seldom.", False),  # the caption is complete
        ("Looms weave.", "Figure 2: A loom at work", "breaks its threads.", False),  # no sentence, so it needs no end
        (
            "The looms of this mill weave cloth all night and",
            CUT,
            "break threads when they are fast.",
            False,
        ),  # what continues is the paragraph
        ("Looms weave.", CUT, "breaks | red", False),
    ],
)
def test_a_caption_cut_by_a_page_break_is_completed(before: str, caption: str, after: str, joined: bool) -> None:
    text = f"# Looms\n\n{before}\n\n{caption}\n\n{after}\n\nMore of looms.\n"
    paper = replace(parse_markdown(text), page_starts=(0, text.index(after)))
    (found,) = find_figures(paper)
    assert found.figure.caption == (f"{caption} {after}" if joined else caption)
    assert (found.figure.start, found.figure.page) == (text.index(caption), 1)


def test_figures_are_numbered_in_reading_order() -> None:
    found = found_in(f"{DRAWN}\n\nTable 1: Speeds.\n\n{TABLE}\n\nFigure 2: Another loom weaves.")
    assert [(each.figure.number, each.figure.kind) for each in found] == [(0, "figure"), (1, "table"), (2, "figure")]


@pytest.mark.parametrize(
    ("caption", "label"),
    [
        ("**Figure 2.** A loom", "Figure 2"),
        ("Fig. S3: A loom", "Fig. S3"),
        ("S1 Table. Looms", "S1 Table"),
        ("TABLE IV. Looms", "TABLE IV"),
        ("A loom", ""),
        (": A loom", ""),
    ],
)
def test_labels_are_read_as_printed(caption: str, label: str) -> None:
    assert read_label(caption) == label
