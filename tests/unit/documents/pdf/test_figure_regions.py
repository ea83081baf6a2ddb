"""The part of a page to which a caption belongs."""

from __future__ import annotations

import pytest

from citeloom.documents.pdf.drawing import Box, PageLayout, find_region

WIDTH, HEIGHT = 600.0, 800.0


def lines(top: float, count: int, left: float = 60.0, right: float = 540.0) -> list[Box]:
    """Running text from `top` down."""
    return [(left, top - 12 * number - 10, right, top - 12 * number) for number in range(count)]


def page(drawings: list[Box], text: list[Box], *captions: Box) -> PageLayout:
    return PageLayout(WIDTH, HEIGHT, tuple(drawings), (*text, *captions), captions)


CAPTION = (60.0, 400.0, 540.0, 420.0)
TEXT = [*lines(780, 8), *lines(380, 20)]


def test_a_figure_is_the_drawing_above_its_caption() -> None:
    drawings = [(100.0, 450.0, 300.0, 600.0), (320.0, 440.0, 500.0, 610.0)]
    label = (200.0, 425.0, 260.0, 433.0)
    assert find_region(CAPTION, "figure", page(drawings, [*TEXT, label], CAPTION)) == (100.0, 425.0, 500.0, 610.0)


def test_a_figure_may_be_below_its_caption() -> None:
    drawing = (100.0, 100.0, 500.0, 350.0)
    assert find_region(CAPTION, "figure", page([drawing], lines(780, 20), CAPTION)) == drawing


def test_the_last_line_of_a_paragraph_is_not_part_of_a_figure() -> None:
    last = (60.0, 660.0, 200.0, 670.0)
    drawing = (100.0, 450.0, 500.0, 655.0)
    assert find_region(CAPTION, "figure", page([drawing], [*lines(780, 9), last, *lines(380, 20)], CAPTION)) == drawing


def test_the_figure_of_another_caption_is_left_out() -> None:
    upper = (60.0, 600.0, 540.0, 620.0)
    drawings = [(100.0, 640.0, 500.0, 780.0), (100.0, 440.0, 500.0, 580.0)]
    layout = page(drawings, lines(380, 20), upper, CAPTION)
    assert find_region(upper, "figure", layout) == drawings[0]
    assert find_region(CAPTION, "figure", layout) == drawings[1]


def test_a_figure_in_one_of_two_columns_ends_at_the_gutter() -> None:
    columns = [*lines(380, 20, 40, 290), *lines(780, 40, 310, 560)]
    caption = (40.0, 400.0, 290.0, 420.0)
    drawings = [(60.0, 440.0, 280.0, 700.0), (330.0, 100.0, 540.0, 300.0)]
    assert find_region(caption, "figure", page(drawings, columns, caption)) == drawings[0]


@pytest.mark.parametrize(
    "drawing", [(100.0, 430.0, 120.0, 450.0), (0.0, 0.0, 600.0, 800.0), (60.0, 430.0, 540.0, 431.0)]
)
def test_decoration_backgrounds_and_rules_are_not_figures(drawing: Box) -> None:
    assert find_region(CAPTION, "figure", page([drawing], TEXT, CAPTION)) is None


def test_a_table_extends_from_its_first_rule_to_its_last() -> None:
    rules = [(70.0, y, 530.0, y + 1) for y in (390.0, 370.0, 200.0)]
    underline = (60.0, 500.0, 110.0, 501.0)
    layout = page([*rules, underline], [*lines(780, 20), *lines(386, 15), *lines(180, 5)], CAPTION)
    assert find_region(CAPTION, "table", layout) == (70.0, 200.0, 530.0, 391.0)


def test_a_table_of_cells_ends_with_its_last_cell() -> None:
    cells = [
        (60.0 + 120 * column, 360.0 - 30 * row, 180.0 + 120 * column, 390.0 - 30 * row)
        for column in range(4)
        for row in range(3)
    ]
    heading = (60.0, 100.0, 540.0, 101.0)
    layout = page([*cells, heading], [*lines(780, 20), *lines(280, 10)], CAPTION)
    assert find_region(CAPTION, "table", layout) == (60.0, 300.0, 540.0, 390.0)


def test_a_thousand_drawings_are_handled_quickly() -> None:
    chain = [(60.0 + number % 50, 390.0 - number, 160.0, 391.0 - number + 5) for number in range(380)]
    assert find_region(CAPTION, "table", page(chain, TEXT, CAPTION)) is not None
