"""The words of a scanned page are read from hOCR with their positions, and other output is refused."""

from __future__ import annotations

import pytest

from citeloom.documents.pdf.ocr import read_hocr, unify_sizes
from citeloom.documents.safe_files import FileRefusedError
from tests.support.scanned_pdfs import hocr


def test_word_positions_are_given_in_points() -> None:
    page, turn = read_hocr(hocr("Node degree"))
    assert (page.width, page.height, turn) == (240, 336, 0)
    node, degree = page.runs
    assert (node.text, degree.text) == ("Node", "degree")
    assert node.x == pytest.approx(2.4) and degree.x == pytest.approx(24)
    assert node.y == pytest.approx((1400 - 70) * 0.24) and node.y == degree.y


def test_words_that_tesseract_only_guesses_are_left_out() -> None:
    assert read_hocr(hocr("|||", sure=12))[0].runs == ()


def test_a_line_with_the_name_of_a_standard_section_is_a_heading() -> None:
    runs = read_hocr(hocr("2 Methods", "We counted nodes", "results"))[0].runs
    assert [run.text for run in runs if run.bold] == ["2", "Methods"]


def test_a_page_lying_on_its_side_is_turned_upright() -> None:
    assert read_hocr(hocr("Node degree", angle=90))[1] == -90
    assert read_hocr(hocr("Node degree", angle=180))[1] == -180


def test_rising_lines_show_the_skew_of_the_page() -> None:
    text = hocr("The degree of nodes").replace("textangle 0.0", "baseline -0.0524 3")
    assert read_hocr(text)[1] == pytest.approx(-3, abs=0.01)


def test_similar_font_sizes_are_merged_and_different_ones_kept_apart() -> None:
    text = hocr("Title words", "body text here", "more body text")
    text = text.replace("x_size 30", "x_size 60", 1).replace("x_size 30", "x_size 31.5", 1)
    sizes = [round(run.size, 2) for run in unify_sizes({1: read_hocr(text)[0]})[1].runs]
    assert len(set(sizes[2:])) == 1 and sizes[0] > 1.5 * sizes[2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Segmentation fault",
        "<html><body>",
        "<html><body/></html>",
        hocr("word").replace("bbox 0 0 1000 1400", "none"),
        hocr("word").replace("scan_res 300", "scan_res 0"),
        hocr("word").replace("bbox 10 40 90 70", "bbox one two"),
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><html>&c;</html>',
    ],
)
def test_other_output_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(FileRefusedError, match="hOCR"):
        read_hocr(text)
