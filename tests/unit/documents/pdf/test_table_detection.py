"""Tables without lines in a PDF: which rows form a table, and which only look like one."""

from __future__ import annotations

from citeloom.documents.pdf.lines import read_lines, take_tables, take_wide_tables
from citeloom.documents.pdf.pages import Page, TextRun

SIZE = 10.0
LETTER = 5.0  # width


def row(y: float, *cells: tuple[float, str]) -> list[TextRun]:
    """Cells at their left edges."""
    return [TextRun(x, y, LETTER * len(text), SIZE, SIZE, False, False, text) for x, text in cells]


def table(top: float, x: float = 72.0) -> list[list[TextRun]]:
    return [
        row(top, (x + 90, "Recall"), (x + 155, "Precision")),
        row(top - 12, (x, "BM25 "), (x + 90, "66.6 "), (x + 160, "40.4")),
        row(top - 24, (x, "dense "), (x + 90, "7.0"), (x + 160, "4.2")),
        row(top - 36, (x, "both of them"), (x + 90, "70.0 (1.2)"), (x + 160, "43.3")),
    ]


MARKDOWN = """\
|  | Recall | Precision |
|---|---|---|
| BM25 | 66.6 | 40.4 |
| dense | 7.0 | 4.2 |
| both of them | 70.0 (1.2) | 43.3 |"""
PROSE = row(700, (72, "We compare three ways of finding the passages that a sentence cites, and"))
CAPTION = row(560, (72, "Table 1: Three ways of finding."))


def test_rows_of_numbers_are_a_table_with_their_header() -> None:
    rest, tables = take_tables([PROSE, *table(680), CAPTION])
    assert [found.markdown for found in tables] == [MARKDOWN]
    assert rest == [PROSE, CAPTION]
    assert (tables[0].x, tables[0].y, tables[0].height) == (72, 644, 46)


def test_a_caption_or_text_above_a_table_is_not_its_header() -> None:
    _, tables = take_tables([row(692, (72, "Table 1: Three"), (210, "ways")), *table(680)])
    assert [found.markdown for found in tables] == [MARKDOWN]
    above = row(692, (72, "of finding by all of their words"), (262, "again"))
    assert [found.markdown for found in take_tables([above, *table(680)])[1]] == [MARKDOWN]


def test_group_names_and_empty_cells_keep_their_columns() -> None:
    rows = table(680)
    rows.insert(3, row(650, (80, "Group two")))
    rows[4] = row(638, (72, "both"), (162, "1.0"), (232, "0.5"))
    rows.append(row(626, (162, "3.0"), (232, "4|5")))
    rows.append(row(614, (72, "last"), (162, "9.0"), (232, "8.0")))
    (found,) = take_tables(rows)[1]
    assert found.markdown.splitlines()[4:] == [
        "| Group two |  |  |",
        "| both | 1.0 | 0.5 |",
        "|  | 3.0 | 4\\|5 |",
        "| last | 9.0 | 8.0 |",
    ]


def test_other_lines_are_not_a_table() -> None:
    too_few = table(680)[:3]
    far_apart = [row(700 - 40 * n, (72, "a"), (162, "1.0"), (232, "2.0")) for n in range(4)]
    crossed = [
        row(700 - 12 * n, (72, "one"), (150 + 9 * n, "1.0"), (180 + 9 * n, "2.0"), (270, "3.0")) for n in range(5)
    ]
    prose = [
        row(700 - 12 * n, (72, "Of the 12 papers 3 were"), (190, "2015 to 2020 and"), (290, "7 more")) for n in (0, 1)
    ]
    for rows in (too_few, far_apart, crossed, prose):
        assert take_tables(rows) == (rows, [])
    assert take_tables([]) == ([], [])


def test_a_table_across_two_columns_stays_whole_and_neighbouring_tables_stay_apart() -> None:
    gutter = 300.0

    def parted(runs: list[TextRun]) -> list[list[TextRun]]:
        sides = [run for run in runs if run.x < gutter], [run for run in runs if run.x >= gutter]
        return [side for side in sides if side]

    wide = [row(700 - 12 * n, (72, f"way {n}"), (310, f"1.{n}"), (360, f"2.{n}"), (410, f"3.{n}")) for n in range(4)]
    rest, tables = take_wide_tables(wide, parted)
    assert rest == [] and tables[0].markdown.splitlines()[-1] == "| way 3 | 1.3 | 2.3 | 3.3 |"
    beside = [[*left, *right] for left, right in zip(table(700), table(700, x=320), strict=True)]
    assert take_wide_tables(beside, parted) == (beside, [])
    text = [
        [
            *PROSE[:0],
            *row(700 - 12 * n, (72, "a line of running text that is as wide as a column"), (310, "1.0"), (360, "2")),
        ]
        for n in range(4)
    ]
    assert take_wide_tables(text, parted) == (text, [])


def test_a_table_keeps_its_place_in_the_reading_order() -> None:
    runs = tuple(run for line in [PROSE, *table(680), CAPTION] for run in line)
    lines = read_lines([Page(612, 792, runs, (), 0)], lost=False)
    assert [line.table for line in lines] == [False, True, False]
    assert lines[1].text == MARKDOWN


def test_a_page_number_inside_the_text_area_is_left_out() -> None:
    def page(number: int) -> Page:
        runs = [*PROSE, *row(300, (72, "3")), *row(150, (300, str(number + 1)))]
        return Page(612, 792, tuple(runs), (), 0)

    lines = read_lines([page(0), page(1)], lost=False)
    assert [line.text for line in lines] == [PROSE[0].text, "3"] * 2
