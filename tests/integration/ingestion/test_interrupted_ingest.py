"""A kill at any moment, two writers, and readers while another process writes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest
from citeloom.ingestion.ingest_events import Waiting
from citeloom.stores.folder_home import FolderHome, FolderLock
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.text_analysis import analyze
from tests.support.nearest import nearest
from tests.support.word_embedding import WordEmbedding

SCRIPT = Path(__file__).resolve().parent.parent.parent / "support" / "interrupted_ingest.py"
# How many papers are written at once, the event, and which one of them.
MOMENTS = [
    (1, "Planned", 1),
    (1, "Embedded", 3),
    (1, "Staged", 1),
    (1, "Vectors", 1),
    (1, "Stored", 1),
    (1, "Words", 2),
    (2, "Staged", 2),
    (2, "FullText", 1),
]
FURTHER_MOMENTS = [
    (1, "FullText", 1),
    (1, "Words", 1),
    (1, "Staged", 2),
    (1, "Vectors", 2),
    (2, "Staged", 1),
    (2, "Vectors", 1),
    (2, "Words", 1),
    (2, "Stored", 1),
]


def start(
    home: Home, papers: Path, action: str, event: str, number: int, *, together: int = 1
) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), str(home.root), str(papers), str(together), action, event, str(number)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@dataclass(frozen=True)
class Contents:
    """All that a reader can see: texts and vectors by chunk id, and what a search for words finds.

    Scores are left out: until tantivy merges segments, they count deleted chunks, and which segment held those depends
    on how many papers were ready at each commit.
    """

    chunks: dict[str, tuple[str, bytes]]
    words: dict[str, str]
    found: frozenset[str]


def contents(library: Library) -> Contents:
    chunks = [chunk for paper in library.papers() for chunk in library.paper_chunks(paper.key)]
    vectors = library.store.get_vectors([chunk.id for chunk in chunks])
    terms = analyze("loom history, compiler outcome")
    return Contents(
        {chunk.id: (chunk.text, vectors[chunk.id].tobytes()) for chunk in chunks},
        library.fulltext.entries(),
        frozenset(name for name, _ in library.matching(terms, 100)),
    )


async def undisturbed(tmp_path: Path, papers: Path, edit: Callable[[], object] | None = None) -> tuple[str, Contents]:
    """What the library holds that was never killed; with `edit`, after that and another ingest."""
    library = Library.open(FolderHome(tmp_path / "undisturbed"), WordEmbedding())
    await ingest(library, [papers])
    if edit is not None:
        edit()
        await ingest(library, [papers])
    seen = library.version(), contents(library)
    library.close()
    return seen


@pytest.mark.parametrize(
    ("together", "event", "number"),
    [*MOMENTS, *(pytest.param(*moment, marks=pytest.mark.long) for moment in FURTHER_MOMENTS)],
)
async def test_the_ingest_after_a_kill_completes_the_library(
    home: Home,
    papers: Path,
    tmp_path: Path,
    open_library: Callable[..., Library],
    together: int,
    event: str,
    number: int,
) -> None:
    version, wanted = await undisturbed(tmp_path, papers)
    with start(home, papers, "kill", event, number, together=together) as process:
        assert process.wait() == -signal.SIGKILL
    library = open_library()
    kept = contents(library) if library.papers() else Contents({}, {}, frozenset())
    assert kept.chunks.items() <= wanted.chunks.items()
    assert kept.words.keys() == kept.chunks.keys()
    assert [finding for finding in examine(library) if finding.level == "problem"] == []
    staged = 0 if event in {"Planned", "Embedded"} else max(number, together)
    assert len(library.papers()) >= staged
    await ingest(library, [papers])
    assert (library.version(), contents(library)) == (version, wanted)
    assert len(library.store.stored_ids()) == len(wanted.chunks)


@pytest.mark.parametrize(
    "event",
    [
        *("Embedded", "Staged", "Stored"),
        *(pytest.param(event, marks=pytest.mark.long) for event in ("Vectors", "FullText", "Words")),
    ],
)
async def test_a_killed_edit_leaves_the_old_or_the_new_text(
    home: Home, papers: Path, tmp_path: Path, open_library: Callable[..., Library], event: str
) -> None:
    before = open_library()
    await ingest(before, [papers])
    old = contents(before)
    before.close()
    file = papers / "ada2020.md"
    text = file.read_text(encoding="utf-8")
    new = text[: text.index("## Results")].replace("loom history", "mill history")
    version, wanted = await undisturbed(tmp_path, papers, lambda: file.write_text(new, encoding="utf-8"))
    with start(home, papers, "kill", event, 1) as process:
        assert process.wait() == -signal.SIGKILL
    library = open_library()
    assert contents(library) == (old if event == "Embedded" else wanted)
    assert len(library.papers()) == 2
    await ingest(library, [papers])
    assert (library.version(), contents(library)) == (version, wanted)
    assert library.store.stored_ids() == wanted.chunks.keys()


async def test_a_second_writer_waits_and_says_for_which_process(
    home: Home, papers: Path, open_library: Callable[..., Library]
) -> None:
    with start(home, papers, "wait", "Stored", 1) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "Stored\n"
        library = open_library()
        assert FolderLock(home).holder() == process.pid
        assert any(f"process {process.pid}" in finding.message for finding in examine(library))
        assert len(library.papers()) == 1
        waited: list[int | None] = []

        def let_go(event: object) -> None:
            if isinstance(event, Waiting):
                waited.append(event.pid)
                process.stdin.write("\n")
                process.stdin.flush()

        report = await ingest(library, [papers], on_event=let_go)
        assert process.wait() == 0
    assert waited == [process.pid]
    assert (report.unchanged, report.chunks_embedded) == (("ada2020", "grace2021"), 0)
    assert FolderLock(home).holder() is None


async def test_a_reader_sees_what_another_process_wrote(
    home: Home, papers: Path, open_library: Callable[..., Library]
) -> None:
    library = open_library()
    await ingest(library, [papers / "ada2020.md"])
    query = await library.embedding.embed_query("compiler procedure trials")
    assert {chunk.key for chunk, _ in nearest(library, query, 3)} == {"ada2020"}
    with start(home, papers, "wait", "Nothing", 1) as process:
        assert process.wait() == 0
    assert [paper.key for paper in library.papers()] == ["ada2020", "grace2021"]
    assert nearest(library, query, 3)[0][0].key == "grace2021"
    assert np.allclose(np.linalg.norm(library.store.get_vectors(["grace2021:00000"])["grace2021:00000"]), 1, atol=1e-5)


async def test_threads_may_share_a_library(papers: Path, open_library: Callable[..., Library]) -> None:
    library = open_library()
    await ingest(library, [papers])
    query = await library.embedding.embed_query("loom outcome")
    wanted = [chunk.id for chunk, _ in nearest(library, query, 5)]

    def read(number: int) -> list[str]:
        library.window(f"ada2020:{number % 4:05d}")
        nearest(library, query, 5, keys=["ada2020"])
        return [chunk.id for chunk, _ in nearest(library, query, 5)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(40))) == [wanted] * 40
