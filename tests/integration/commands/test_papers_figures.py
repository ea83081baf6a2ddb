"""`papers figures`: the list, its JSON, and the images in a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

import citeloom as api
from tests.integration.commands.conftest import Citeloom

TEXT = """# On looms

## Results

Looms weave threads into cloth, and fast looms break them more often than slow ones do.

![Figure 1: Threads of a wooden loom.](loom.png)

Table 1: Speeds of looms.

| Loom | Speed |
|---|---|
| Jacquard | 12.5 |
| Drawloom | 3.1 |
"""


@pytest.fixture
def looms(citeloom: Citeloom, tmp_path: Path) -> Path:
    """A home with a paper of one figure and one table."""
    folder = tmp_path / "papers"
    folder.mkdir()
    Image.new("RGB", (300, 200), "red").save(folder / "loom.png")
    (folder / "loom2020.md").write_text(TEXT, encoding="utf-8")
    (folder / "plain2020.md").write_text(
        "# Plain\n\nA paper of words alone, which is to be searched.", encoding="utf-8"
    )
    assert citeloom("ingest", folder, "--home", tmp_path / "home").code == 0
    return tmp_path / "home"


def test_figures_are_listed_with_page_and_caption(citeloom: Citeloom, looms: Path) -> None:
    shown = citeloom("papers", "figures", "loom2020", "--home", looms).out
    assert "1 figure and 1 table" in shown
    assert "300x200" in shown and "Threads of a wooden loom." in shown and "Speeds of looms." in shown
    records = json.loads(citeloom("papers", "figures", "loom2020", "--json", "--home", looms).out)
    assert [(record["kind"], record["label"], record["page"]) for record in records] == [
        ("figure", "Figure 1", None),
        ("table", "Table 1", None),
    ]
    assert "It has 1 figure and 1 table" in citeloom("papers", "show", "loom2020", "--home", looms).out
    assert "has no figures or tables" in citeloom("papers", "figures", "plain2020", "--home", looms).err


def test_a_table_without_an_image_says_why(citeloom: Citeloom, looms: Path, tmp_path: Path) -> None:
    assert "No image: it is kept as rows of the text." in _joined(
        citeloom("papers", "figures", "loom2020", "--home", looms).out
    )
    (tmp_path / "papers" / "bare2020.md").write_text("# Bare\n\nLooms weave.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert citeloom("ingest", tmp_path / "papers", "--home", looms).code == 0
    (record,) = citeloom("papers", "figures", "bare2020", "--json", "--home", looms).json
    assert (record["kind"], record["label"]) == ("table", "")
    assert record["no_image"] == "is kept as rows of the text"


def _joined(shown: str) -> str:
    """The words of a table on a terminal, whose cells are wrapped."""
    return " ".join("".join(c if c.isascii() else " " for c in shown).split())


def test_images_are_written_to_a_folder_without_replacing_files(
    citeloom: Citeloom, looms: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = citeloom("papers", "figures", "loom2020", "--out", out, "--home", looms)
    assert "1 image written" in done.out
    (image,) = out.iterdir()
    assert image.name == "loom2020-figure-1.png"
    with Image.open(image) as opened:
        assert opened.size == (300, 200)
    assert citeloom("papers", "figures", "loom2020", "--out", out, "--home", looms).code == 0
    image.write_text("mine")
    refused = citeloom("papers", "figures", "loom2020", "--out", out, "--home", looms)
    assert refused.code == 2
    assert "exists with other content" in refused.err
    assert image.read_text() == "mine"
    records = json.loads(
        citeloom("papers", "figures", "loom2020", "--out", tmp_path / "o2", "--json", "--home", looms).out
    )
    assert [bool(record["file"]) for record in records] == [True, False]


def test_an_unknown_key_suggests_a_similar_one(citeloom: Citeloom, looms: Path) -> None:
    refused = citeloom("papers", "figures", "loom202", "--home", looms)
    assert refused.code == 2
    assert "Did you mean loom2020" in refused.err


def test_a_passage_from_a_table_or_caption_says_so(citeloom: Citeloom, looms: Path) -> None:
    (first, *_) = json.loads(citeloom("search", "speed of the Drawloom", "--json", "--home", looms).out)
    assert first["figure"] == {"number": 1, "kind": "table", "name": "Table 1"}
    (prose, *_) = json.loads(citeloom("search", "words alone searched", "--json", "--home", looms).out)
    assert prose["figure"] is None
    assert "Table 1" in citeloom("search", "speed of the Drawloom", "--home", looms).out


def test_python_gets_figures_with_their_images(looms: Path) -> None:
    with api.open_library(looms) as library:
        figure, table = api.figures(library, "loom2020", images=True)
        assert figure["image"].startswith(b"\x89PNG")
        assert table["image"] is None
        with pytest.raises(api.CiteloomError, match="no paper 'nobody'"):
            api.figures(library, "nobody")
