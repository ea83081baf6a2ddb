"""Repeatedly changes a library, pausing after each write to one of its stores: `pausing_writer.py HOME PAPERS`.

A line on stdin starts a change ("edit", "add", "rename", "move" or "delete"). After each write its name is printed, and
the next line lets the writer continue; "done" is printed after the last.
"""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from citeloom.ingestion.ingest import ingest
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.local.catalog import Catalog
from citeloom.stores.local.chroma import VectorStore
from citeloom.stores.local.fulltext import FullText
from tests.support.word_embedding import WordEmbedding

UNTOUCHED = ("grace2021", "hedy2019")
_KEYS = ("ada2020", *UNTOUCHED, "mary2018", "maria2018")
_WRITES: tuple[tuple[type, str], ...] = (
    (Catalog, "stage"),
    (VectorStore, "put"),
    (VectorStore, "delete"),
    (FullText, "put"),
    (Catalog, "commit"),
    (Catalog, "update_metadata"),
)
_one_at_a_time = threading.Lock()  # words and vectors are written concurrently


def make_papers(folder: Path) -> None:
    """Write the initial papers; the edited one and an untouched one have a note."""
    folder.mkdir()
    entries = [f"@article{{{key},\n  title = {{Trials of {key}}},\n  year = {{{key[-4:]}}},\n}}\n" for key in _KEYS]
    (folder / "library.bib").write_text("\n".join(entries), encoding="utf-8")
    for name, topic in (("grace2021", "compiler"), ("hedy2019", "radio"), ("ada2020", "loom"), ("first", "engine")):
        (folder / f"{name}.md").write_text(_text(topic, 90), encoding="utf-8")
    for name in ("grace2021", "ada2020"):
        (folder / f"{name}.notes.md").write_text(f"Read {name} for its trials.\n\nThe best of all.", encoding="utf-8")


def _text(topic: str, count: int) -> str:
    sentences = " ".join(
        f"The {topic} number {number} was measured in a series of {topic} trials and grew by {number} units."
        for number in range(count)
    )
    return f"# Trials of {topic}\n\n## Introduction\n\nWe study trials of {topic}.\n\n## Methods\n\n{sentences}\n"


def _edit(folder: Path) -> None:
    topic = f"loom {random.choice('abcdefgh')}"
    (folder / "ada2020.md").write_text(_text(topic, random.randint(20, 120)), encoding="utf-8")
    passages = "\n\n".join(f"A {topic} of {number} trials." for number in range(random.randint(1, 4)))
    (folder / "ada2020.notes.md").write_text(passages, encoding="utf-8")


def _move(folder: Path) -> None:
    """Rename the file of a paper without an entry; the paper keeps its key."""
    first, second = folder / "first.md", folder / "second.md"
    first, second = (first, second) if first.exists() else (second, first)
    first.rename(second)


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": _edit,
    "add": lambda folder: (folder / "mary2018.md").write_text(_text("novel", random.randint(20, 90)), encoding="utf-8"),
    "rename": lambda folder: (folder / "mary2018.md").rename(folder / "maria2018.md"),
    "move": _move,
    "delete": lambda folder: (folder / "maria2018.md").unlink(),
}


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _pausing(owner: type, name: str) -> None:
    write = getattr(owner, name)

    def paused(store: object, what: Any, *kind: str) -> None:
        what = list(what) if owner is Catalog else what
        with _one_at_a_time:
            write(store, what, *kind)
            if len(what):
                _say(name)
                sys.stdin.readline()

    setattr(owner, name, paused)


def main(home: Home, papers: Path) -> None:
    library = Library.open(home, WordEmbedding())
    asyncio.run(ingest(library, [papers]))
    for owner, name in _WRITES:
        _pausing(owner, name)
    _say("done")
    for line in sys.stdin:
        CHANGES[line.strip()](papers)
        asyncio.run(ingest(library, [papers], prune=True))
        _say("done")


if __name__ == "__main__":
    main(FolderHome(Path(sys.argv[1])), Path(sys.argv[2]))
