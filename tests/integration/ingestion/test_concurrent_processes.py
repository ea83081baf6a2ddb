"""Two processes at one library: writers take turns, and a reader meanwhile sees whole papers only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from citeloom.documents import chunk_id
from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.text_analysis import analyze
from tests.integration.ingestion.test_interrupted_ingest import contents, start
from tests.support import cli_process
from tests.support.nearest import nearest
from tests.support.sample_library import SAMPLES
from tests.support.word_embedding import WordEmbedding

HOLD = """
import sys
from citeloom.stores.home import Home
from citeloom.stores.folder_home import FolderHome, FolderLock
from pathlib import Path
with FolderLock(FolderHome(Path(sys.argv[1])).prepare()).try_held() as held:
    print(held, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(home: Home) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the library's lock until it is sent a line."""
    command = [sys.executable, "-c", HOLD, str(home.root)]
    with subprocess.Popen(
        command, cwd=cli_process.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "True\n"
        yield process


@pytest.mark.long
def test_two_concurrent_ingests_take_turns_and_say_which_process_they_wait_for(
    home: Home, holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    command = ("--home", home.root, "ingest", SAMPLES, "--json")
    both = [cli_process.start(*command, cwd=tmp_path) for _ in range(2)]
    for process in both:
        assert process.stderr is not None
        assert any(f"waiting for the lock held by process {holder.pid}" in line for line in process.stderr)
    holder.communicate("\n")
    ended = [cli_process.finish(process) for process in both]
    assert [done.code for done in ended] == [0, 0]
    assert sorted(done.json["papers_added"] for done in ended) == [0, 10]
    assert sorted(done.json["papers_unchanged"] for done in ended) == [0, 10]
    checked = cli_process.run("--home", home.root, "doctor", "--json", cwd=tmp_path)
    assert checked.code == 0 and checked.json["library"]["papers"] == 10


async def seen_whole(library: Library) -> set[str]:
    """The papers that a reader sees, each of them whole and nothing else, by id, by vectors and by words."""
    every = {
        chunk_id(paper.key, place) for paper in library.papers() for place in range(library.chunk_count(paper.key))
    }
    keys = {paper.key for paper in library.papers()}
    query = await library.embedding.embed_query("trials measured")
    terms = analyze("series of trials")
    assert {chunk.id for key in keys for chunk in library.paper_chunks(key)} == every
    assert {chunk.id for chunk, _ in nearest(library, query, 1000)} == every
    assert {name for name, _ in library.matching(terms, 1000)} == every
    assert {near.paper.key for near in library.nearest_papers(query, 1000)} == keys
    for few in (1, 3):
        assert len(library.matching(terms, few)) == len(nearest(library, query, few)) == min(few, len(every))
    return keys


@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("event", ["Staged", "Vectors", "FullText", "Words", "Stored"])
async def test_a_reader_sees_only_complete_papers(
    home: Home, papers: Path, open_library: Callable[..., Library], event: str, number: int
) -> None:
    before = open_library()
    assert await seen_whole(before) == set()
    with start(home, papers, "wait", event, number) as process:
        assert process.stdout is not None and process.stdout.readline() == f"{event}\n"
        for reader in (before, open_library()):
            keys = await seen_whole(reader)
            assert len(keys) == (number if event == "Stored" else number - 1)
        process.communicate("\n")
    assert await seen_whole(before) == {"ada2020", "grace2021"}


@pytest.mark.parametrize(
    "event",
    ["Staged", "Stored", *(pytest.param(event, marks=pytest.mark.long) for event in ("Vectors", "FullText", "Words"))],
)
async def test_a_reader_sees_the_old_or_new_version_of_an_edited_paper_or_none(
    home: Home, papers: Path, tmp_path: Path, open_library: Callable[..., Library], event: str
) -> None:
    before = open_library()
    await ingest(before, [papers])
    assert await seen_whole(before) == {"ada2020", "grace2021"}
    file = papers / "ada2020.md"
    text = file.read_text(encoding="utf-8").replace("loom history", "mill history")
    file.write_text(text[: text.index("## Results")], encoding="utf-8")
    with start(home, papers, "wait", event, 1) as process:
        assert process.stdout is not None and process.stdout.readline() == f"{event}\n"
        for reader in (before, open_library()):
            assert await seen_whole(reader) == ({"ada2020", "grace2021"} if event == "Stored" else {"grace2021"})
        process.communicate("\n")
    assert await seen_whole(before) == {"ada2020", "grace2021"}
    assert [finding for finding in examine(before) if finding.level == "problem"] == []
    fresh = Library.open(FolderHome(tmp_path / "fresh"), WordEmbedding())
    await ingest(fresh, [papers])
    assert contents(before).chunks == contents(fresh).chunks and contents(before).words == contents(fresh).words
    fresh.close()
