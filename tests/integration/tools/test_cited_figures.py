"""Evidence that is a caption or a table opens its figure; other evidence, and that of a changed paper, opens none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from citeloom.runs.output_files import report_figures
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from citeloom.tools.paper_search import find_cited_figures
from tests.integration.stores.conformance.test_library_stores import LOOM, paper, put
from tests.support.illustrated_home import colour_of, illustrate
from tests.support.vision_answers import png
from tests.support.word_embedding import WordEmbedding

CAPTION = "Fig. 1: A."  # as long as the paper of these tests leaves room for


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    opened = Library.open(FolderHome(tmp_path / "home"), WordEmbedding())
    put(opened, paper("loom2020", [*LOOM, CAPTION]))
    (figure,) = illustrate(opened, "loom2020", [CAPTION])
    described = replace(figure, description="A purple zeppelin.", described_by="see-1")
    opened.catalog.describe("loom2020", [described])
    yield opened
    opened.close()


def cited(index: int, start: int, end: int, quote: str) -> dict[str, Any]:
    name = f"loom2020:0000{index}"
    return {"id": f"E{index}", "evidence_id": f"E{index}", "key": "loom2020", "chunk_id": name} | {
        "start": start,
        "end": end,
        "quote": quote,
    }


def test_a_cited_caption_has_its_figure(library: Library) -> None:
    caption, prose = cited(3, 0, 10, CAPTION), cited(0, 0, 5, "Looms")
    found = find_cited_figures(library, [caption, prose])
    assert {name: figure.name for name, figure in found.items()} == {"E3": "Figure 1"}
    stale = {**caption, "quote": "Fig. 1: B."}
    assert find_cited_figures(library, [stale, {**caption, "key": "gone2020"}]) == {}


def test_the_report_contains_the_image_and_who_described_it(library: Library) -> None:
    shown = report_figures({"citations": [cited(3, 0, 10, CAPTION)]}, library)["E3"]
    assert (shown.content, shown.media_type) == (png(colour_of(1)), "image/png")
    assert (shown.description, shown.described_by) == ("A purple zeppelin.", "see-1")


def test_an_image_that_would_make_the_report_too_large_is_left_out(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [cited(3, 0, 10, CAPTION)] * 3
    monkeypatch.setattr("citeloom.runs.output_files._MOST_FIGURE_BYTES", 2 * len(png(colour_of(1))))
    shown = report_figures({"citations": many}, library)["E3"]
    assert (shown.name, shown.content) == ("Figure 1", b"")
