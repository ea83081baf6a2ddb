"""A small library of made-up papers, and words to search it with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from tests.support.word_embedding import WordEmbedding

BIB = """\
@article{ada2020,
  title = {Looms and engines},
  author = {Ada Lovelace and Charles Babbage},
  year = {2020},
  journal = {Notes on Engines},
}

@article{grace2021,
  title = {Compilers for everyone},
  author = {Hopper, Grace},
  year = {2021},
}
"""


def sentences(topic: str, count: int, first: int = 0) -> str:
    """Prose about a topic, with `count` different sentences."""
    return " ".join(
        f"The {topic} number {number} was measured in a series of {topic} trials and grew by {number} units."
        for number in range(first, first + count)
    )


def paper_text(title: str, topic: str) -> str:
    return (
        f"# {title}\n\n## Abstract\n\nWe study {topic}. {sentences(topic + ' summary', 3)}\n\n"
        f"## Introduction\n\n{sentences(topic + ' history', 40)}\n\n"
        f"## Methods\n\n{sentences(topic + ' procedure', 60)}\n\n"
        f"## Results\n\n{sentences(topic + ' outcome', 30)}\n\n"
        f"## References\n\n1. {sentences(topic + ' reference', 5)}\n"
    )


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    """A folder with two papers and their `.bib`."""
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "ada2020.md").write_text(paper_text("Looms and engines", "loom"), encoding="utf-8")
    (folder / "grace2021.md").write_text(paper_text("Compilers for everyone", "compiler"), encoding="utf-8")
    (folder / "library.bib").write_text(BIB, encoding="utf-8")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return FolderHome(tmp_path / "home")


@pytest.fixture
def open_library(home: Home) -> Iterator[Callable[..., Library]]:
    """Opens the library of `home`; all opened libraries are closed at the end."""
    opened: list[Library] = []

    def open_(embedding: WordEmbedding | None = None) -> Library:
        library = Library.open(home, embedding or WordEmbedding())
        opened.append(library)
        return library

    yield open_
    for library in opened:
        library.close()


@pytest.fixture
def library(open_library: Callable[..., Library]) -> Library:
    return open_library()
