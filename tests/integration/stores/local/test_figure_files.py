"""Images of a home in a folder survive a kill, and what is damaged or hostile in it is not read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from citeloom.documents.figures import image_hash
from citeloom.sqlite import DamagedFileError
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.local.catalog import Catalog
from citeloom.stores.paper_catalog import removal
from tests.integration.stores.conformance.test_figure_stores import FIGURE, PNG, illustrated
from tests.integration.stores.conformance.test_library_stores import put
from tests.support.word_embedding import WordEmbedding


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return FolderHome(tmp_path / "home").prepare()


def opened(home: Home) -> Library:
    return Library.open(home, WordEmbedding())


def test_a_staged_image_is_kept_if_another_paper_loses_it(home: Home) -> None:
    library = opened(home)
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    library.catalog.stage([illustrated("b", FIGURE, images=(PNG,))])
    library.catalog.stage([removal("a")])
    library.carry_out([removal("a")])
    library.close()
    library = opened(home)  # as after a kill: applies what is staged
    assert library.figures("b") == (FIGURE,)
    assert library.figure_image(FIGURE) == PNG
    library.close()


def test_a_damaged_image_is_reported_and_not_read(home: Home) -> None:
    library = opened(home)
    put(library, illustrated("a", FIGURE, images=(PNG,)), illustrated("b"))
    (home.figures / image_hash(PNG)).write_bytes(PNG[:-1])
    assert library.figure_image(FIGURE) is None
    assert library.catalog.incomplete_figures() == {"a"}
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    assert library.catalog.incomplete_figures() == set()
    library.close()


def test_an_image_without_a_paper_is_dropped_with_other_orphans(home: Home) -> None:
    library = opened(home)
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    (home.figures / ".half.tmp").write_bytes(b"")
    (home.figures / image_hash(b"other")).write_bytes(b"other")
    assert library.catalog.stray_images() == {".half.tmp", image_hash(b"other")}
    library.catalog.drop_strays()
    assert library.catalog.stray_images() == set()
    assert library.figure_image(FIGURE) == PNG
    library.close()


def test_a_private_copy_reads_the_images_of_its_original_and_deletes_none(home: Home, tmp_path: Path) -> None:
    original = Catalog(home.prepare())
    original._put_images({image_hash(PNG): PNG})
    copy = Catalog(FolderHome(tmp_path / "copy", copy_of=home.root).prepare())
    assert copy.image(image_hash(PNG)) == PNG
    copy._drop_images([image_hash(PNG)])
    assert original.image(image_hash(PNG)) == PNG


@pytest.mark.parametrize("hostile", ["../catalog.sqlite", "/etc/hostname", "", "A" * 64])
def test_a_catalog_cannot_name_another_file_as_an_image(home: Home, hostile: str) -> None:
    library = opened(home)
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    library.close()
    with sqlite3.connect(home.catalog) as catalog:
        catalog.execute("UPDATE figures SET figures = replace(figures, ?, ?)", (image_hash(PNG), hostile))
    catalog.close()
    library = opened(home)
    with pytest.raises(DamagedFileError, match="table figures, column figures, row key='a'"):
        library.figures("a")
    library.close()


def test_a_catalog_older_than_figures_opens(home: Home) -> None:
    library = opened(home)
    put(library, illustrated("a", FIGURE, images=(PNG,)))
    library.close()
    with sqlite3.connect(home.catalog) as catalog:
        catalog.execute("DROP TABLE figures")
    catalog.close()
    library = opened(home)
    assert library.figures("a") == ()
    assert library.records()["a"].figures_version == ""
    library.close()
