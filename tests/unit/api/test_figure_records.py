"""A figure as a plain record says why it has no image."""

from __future__ import annotations

import pytest

from citeloom.api.library_papers import figure_record
from citeloom.documents.figures import PaperFigure


@pytest.mark.parametrize(
    ("figure", "reason"),
    [
        (PaperFigure(0, "table", "", "", page=3, body=(5, 9)), "has no caption to locate it by on its page"),
        (PaperFigure(0, "table", "Table 1", "T", start=1, end=4, body=(5, 9)), "is kept as rows of the text"),
        (PaperFigure(0, "figure", "Figure 1", "F", start=1, end=4), "names no image file"),
        (PaperFigure(0, "figure", "Figure 1", "F", no_image="is damaged"), "is damaged"),
        (PaperFigure(0, "figure", "Figure 1", "F", image_hash="0" * 64), ""),
    ],
)
def test_a_figure_without_an_image_says_why(figure: PaperFigure, reason: str) -> None:
    assert figure_record(figure)["no_image"] == reason
