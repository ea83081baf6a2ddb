"""Figures and images are written, read, shared and removed in the same way on every backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from citeloom.documents.figures import FIGURES_VERSION, PaperFigure, image_hash
from citeloom.ingestion.doctor import examine
from citeloom.ingestion.home_copy import build_change
from citeloom.models.embeddings.protocol import encode_vector
from citeloom.stores.home import Home
from citeloom.stores.library import Library, UnknownPaperError
from citeloom.stores.paper_catalog import Change, removal
from citeloom.stores.store_protocols import TextScope
from citeloom.stores.text_analysis import analyze
from tests.support.word_embedding import WordEmbedding

from .test_library_stores import LOOM, paper, put

PNG = b"\x89PNG of a loom"
JPEG = b"\xff\xd8\xff of a seed"
FIGURE = PaperFigure(
    0, "figure", "Figure 1", "Figure 1: A loom (“threads”).", 2, 10, 30, None, image_hash(PNG), "image/png", 640, 480
)
TABLE = PaperFigure(1, "table", "Table 1", "Table 1: Speeds.", 3, 40, 55, (57, 90), table_chunks=(0, 1))


def illustrated(key: str, *figures: PaperFigure, images: tuple[bytes, ...] = ()) -> Change:
    change = paper(key, LOOM)
    assert change.record is not None
    return replace(
        change,
        record=replace(change.record, figures_version=FIGURES_VERSION),
        figures=figures,
        images={image_hash(content): content for content in images},
    )


def test_figures_are_read_back_with_their_images(library: Library) -> None:
    put(library, illustrated("loom2020", FIGURE, TABLE, images=(PNG,)), paper("old2019", LOOM))
    assert library.figures("loom2020") == (FIGURE, TABLE)
    assert library.figures("old2019") == ()
    assert library.figure_image(FIGURE) == PNG
    assert library.figure_image(TABLE) is None
    (read,) = library.catalog.figures_by_paper()
    assert read[0] == "loom2020" and sorted(figure.kind for figure in read[1]) == ["figure", "table"]
    assert library.records()["loom2020"].figures_version == FIGURES_VERSION
    assert library.records()["old2019"].figures_version == ""
    with pytest.raises(UnknownPaperError):
        library.figures("loom2021")


def test_an_image_is_deleted_with_the_last_paper_that_uses_it(library: Library) -> None:
    put(library, illustrated("a", FIGURE, images=(PNG,)), illustrated("b", FIGURE, images=(PNG,)))
    put(library, removal("a"))
    assert library.figure_image(FIGURE) == PNG
    put(library, removal("b"))
    assert library.figure_image(FIGURE) is None
    assert library.catalog.stray_images() == set()


def test_a_new_image_replaces_the_old_one(library: Library) -> None:
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    other = replace(FIGURE, image_hash=image_hash(JPEG), media_type="image/jpeg")
    put(library, illustrated("a", other, images=(JPEG,)))
    assert library.figures("a") == (other,)
    assert (library.figure_image(other), library.figure_image(FIGURE)) == (JPEG, None)


def test_a_change_that_keeps_an_image_need_not_supply_it_again(library: Library) -> None:
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    put(library, illustrated("a", FIGURE, TABLE))
    assert library.figure_image(library.figures("a")[0]) == PNG


def test_a_description_is_stored_beside_the_caption(library: Library) -> None:
    put(library, illustrated("a", FIGURE, TABLE, images=(PNG,)), illustrated("b", FIGURE, images=(PNG,)))
    described = replace(FIGURE, description="A wooden loom.", described_by="see-1", vector="AAAA", described_chunk=0)
    library.catalog.describe("a", [described])
    assert library.figures("a") == (described, TABLE)
    assert _described(library) == [described]


def _described(library: Library) -> list[PaperFigure]:
    figures = (figure for _, listed in library.catalog.figures_by_paper() for figure in listed)
    return [figure for figure in figures if figure.description]


def test_a_search_for_words_of_a_description_finds_the_chunk_of_the_caption(library: Library) -> None:
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    assert library.matching(analyze("zebra"), 5) == []
    described = replace(
        FIGURE, description="A zebra.", described_by="see-1", vector=encode_vector(np.ones(4)), described_chunk=0
    )
    library.catalog.describe("a", [described])
    assert [name for name, _ in library.matching(analyze("zebra"), 5)] == ["a:00000"]
    assert library.matching(analyze("zebra"), 5, TextScope(["b"])) == []


def test_the_next_search_finds_descriptions_added_by_another_process(open_library: Callable[[], Library]) -> None:
    library, other = open_library(), open_library()
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    zebra, unlike = analyze("zebra"), WordEmbedding().vector("A zebra.")
    assert library.matching(zebra, 5) == []
    assert library.nearest_ids(unlike, 1)[0][1] < 0.9
    described = replace(
        FIGURE, description="A zebra.", described_by="see-1", vector=encode_vector(unlike), described_chunk=2
    )
    other.catalog.describe("a", [described])
    assert [name for name, _ in library.matching(zebra, 5)] == ["a:00002"]
    other.catalog.describe("a", [replace(described, described_chunk=1)])
    [(name, cosine)] = library.nearest_ids(unlike, 1)
    assert (name, round(cosine, 3)) == ("a:00001", 1.0)
    other.catalog.describe("a", [replace(described, described_chunk=0)])
    assert [name for name, _ in library.matching([*zebra, "nowhere"], 5)] == ["a:00000"]


def test_a_description_of_a_changed_figure_is_not_stored(library: Library) -> None:
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    described = replace(FIGURE, description="A wooden loom.", described_by="see-1")
    for stale in (replace(described, image_hash=image_hash(JPEG)), replace(described, number=7)):
        library.catalog.describe("a", [stale])
    library.catalog.describe("unknown", [described])
    assert library.figures("a") == (FIGURE,)
    assert _described(library) == []


def test_a_search_knows_which_chunks_contain_table_rows(library: Library) -> None:
    put(library, illustrated("a", FIGURE, TABLE, images=(PNG,)), illustrated("b", FIGURE, images=(PNG,)))
    ids = ["a:00000", "a:00001", "a:00002", "b:00000", "unknown:00000"]
    assert library.described.chunks_of_tables(ids) == {"a:00000", "a:00001"}
    put(library, illustrated("a", FIGURE, replace(TABLE, table_chunks=None)))
    assert library.described.chunks_of_tables(ids) == set()


def test_a_copied_change_includes_figures_and_images(library: Library) -> None:
    put(library, illustrated("a", FIGURE, TABLE, images=(PNG,)))
    change = build_change(library, "a")
    assert change.figures == (FIGURE, TABLE)
    assert change.images == {FIGURE.image_hash: PNG}


def test_the_catalog_alone_lists_figures_too(library: Library, home: Home) -> None:
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    catalog = home.open_catalog()
    try:
        assert catalog.figures("a") == (FIGURE,)
        assert catalog.image(image_hash(PNG)) == PNG
        assert catalog.image("../catalog.sqlite") is None
    finally:
        catalog.close()


def test_doctor_finds_nothing_wrong_with_figures(library: Library) -> None:
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    assert [finding for finding in examine(library) if finding.level == "problem"] == []
