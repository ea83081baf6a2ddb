"""Readers beside a writer, many times over, while another process keeps a core busy: `make torture`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from citeloom.documents import chunk_id
from citeloom.stores.home import Home
from citeloom.stores.ingest import ingest
from citeloom.stores.library import Library
from tests.integration.stores.conftest import BIB, paper_text
from tests.integration.stores.test_interrupted_ingest import start
from tests.integration.stores.test_two_at_once import seen_whole
from tests.support import restless_writer
from tests.support.made_papers import similar
from tests.support.word_embedding import WordEmbedding

HOMES = int(os.environ.get("CITELOOM_TORTURE_HOMES", "6"))
READERS = int(os.environ.get("CITELOOM_TORTURE_READERS", "50"))  # of each home


@pytest.fixture(autouse=True)
def _busy_core() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield
        process.kill()


@pytest.fixture(params=[5_000, 0], ids=["whole", "graph"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared whole, as so small a library is, and through the graph, as a large one."""
    monkeypatch.setattr("citeloom.stores.reach.WHOLE_LIMIT", request.param)


def two_papers(folder: Path) -> Path:
    folder.mkdir()
    (folder / "ada2020.md").write_text(paper_text("Looms and engines", "loom"), encoding="utf-8")
    (folder / "grace2021.md").write_text(paper_text("Compilers for everyone", "compiler"), encoding="utf-8")
    (folder / "library.bib").write_text(BIB, encoding="utf-8")
    return folder


def shorten(file: Path) -> None:
    text = file.read_text(encoding="utf-8").replace("loom history", "mill history")
    file.write_text(text[: text.index("## Results")], encoding="utf-8")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("event", ["Staged", "Vectors", "FullText", "Words", "Stored"])
async def test_each_of_many_readers_sees_the_paper_that_nobody_touched(event: str, tmp_path: Path) -> None:
    for number in range(HOMES):
        home, papers = Home(tmp_path / f"home{number}"), two_papers(tmp_path / f"papers{number}")
        library = Library.open(home, WordEmbedding())
        await ingest(library, [papers])
        library.close()
        shorten(papers / "ada2020.md")
        with start(home, papers, "wait", event, 1) as process:
            assert process.stdout is not None and process.stdout.readline() == f"{event}\n"
            for _ in range(READERS):
                reader = Library.open(home, WordEmbedding())
                assert await seen_whole(reader) >= {"grace2021"}
                reader.close()
            process.communicate("\n")


@pytest.fixture
def restless(tmp_path: Path) -> Iterator[Callable[[int], Home]]:
    """A library that a process edits without pause."""
    begun: list[subprocess.Popen[str]] = []

    def start_writing(sync: int) -> Home:
        command = [sys.executable, restless_writer.__file__, str(tmp_path / "home"), str(sync)]
        begun.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        output = begun[0].stdout
        assert output is not None and output.readline() == "written\n"
        return Home(tmp_path / "home")

    yield start_writing
    for process in begun:
        assert process.poll() is None  # it came to no harm
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("sync", [60, 1_000])
def test_a_writer_without_rest_takes_no_chunk_of_other_papers_from_a_reader(
    restless: Callable[[int], Home], sync: int
) -> None:
    home = restless(sync)
    random = np.random.default_rng(2)
    kept = Library.open(home, WordEmbedding())
    untouched = {key: kept.chunk_count(key) for key in restless_writer.KEYS if key not in restless_writer.EDITED}
    wanted = {chunk_id(key, place) for key, count in untouched.items() for place in range(count)}
    for _ in range(READERS):
        fresh = Library.open(home, WordEmbedding())
        for reader in (kept, fresh):
            query = similar(random, 1)[0]
            records = reader.records()
            found = {name for name, _ in reader.nearest_ids(query, 1000)}
            assert wanted <= found
            if reader.records() is records:
                every = {chunk_id(key, at) for key, record in records.items() for at in range(record.chunk_count)}
                assert found == every
            assert {near.paper.key for near in reader.nearest_papers(query, 100)} >= untouched.keys()
            assert len(reader.chunks(sorted(wanted))) == len(wanted)
        fresh.close()
    kept.close()


@pytest.mark.usefixtures("way")
def test_threads_that_share_a_library_lose_nothing_beside_a_writer_without_rest(
    restless: Callable[[int], Home],
) -> None:
    library = Library.open(restless(1_000), WordEmbedding())
    untouched = [key for key in restless_writer.KEYS if key not in restless_writer.EDITED]
    wanted = {chunk_id(key, place) for key in untouched for place in range(library.chunk_count(key))}

    def search(seed: int) -> bool:
        query = similar(np.random.default_rng(seed), 1)[0]
        return wanted <= {name for name, _ in library.nearest_ids(query, 1000)}

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(search, range(4 * READERS)))
    library.close()
