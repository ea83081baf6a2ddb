"""Tables whose cells are painted as rectangles."""

from __future__ import annotations

from typing import Any

from citeloom.documents.pdf.pages import TextRun, find_grids, read_grid

PAGE = 600.0 * 800.0
WORDS = [["Term", "Meaning"], ["Loom", "A frame for weaving"], ["Weft", "The crossing thread"]]


def rectangle(x: float, y: float, width: float, height: float) -> dict[str, Any]:
    return {"bbox": (x, y, width, height)}


def cells(rows: int, columns: int, top: float = 700.0) -> list[dict[str, Any]]:
    return [
        rectangle(50 + 200 * column, top - 30 * (row + 1), 200, 30) for row in range(rows) for column in range(columns)
    ]


def runs(words: list[list[str]], top: float = 700.0) -> list[TextRun]:
    return [
        TextRun(55 + 200 * column + 40 * place, top - 30 * row - 20, 35, 10, 10, False, False, word)
        for row, texts in enumerate(words)
        for column, text in enumerate(texts)
        for place, word in enumerate(text.split())
    ]


def test_words_are_read_cell_by_cell() -> None:
    (grid,) = find_grids(cells(3, 2), runs(WORDS), PAGE)
    assert read_grid(grid, runs(WORDS), lost=False).markdown == (
        "| Term | Meaning |\n|---|---|\n| Loom | A frame for weaving |\n| Weft | The crossing thread |"
    )


def test_a_cell_painted_twice_is_read_once() -> None:
    twice = [*cells(3, 2), *cells(3, 2)]
    assert find_grids(twice, runs(WORDS), PAGE) == find_grids(cells(3, 2), runs(WORDS), PAGE)


def test_boxes_without_a_grid_are_not_a_table() -> None:
    background = [rectangle(0, 0, 600, 800)]
    single = [rectangle(50, 600, 200, 30), rectangle(300, 600, 200, 30)]
    apart = [*cells(1, 2), *cells(1, 2, top=400)]
    for boxes in (background, single, apart, cells(3, 1), []):
        assert find_grids(boxes, runs(WORDS), PAGE) == []
    assert find_grids(cells(3, 2), [], PAGE) == []  # a calendar without words
