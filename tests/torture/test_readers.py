"""Readers beside a writer, many times over, while two other processes keep the cores busy: `make torture`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from citeloom.documents import chunk_id
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.local.vector_search import Nearest
from citeloom.stores.store_protocols import cosines, sort_scores
from citeloom.stores.text_analysis import analyze
from citeloom.tools.retrieval import retrieve
from tests.support import pausing_writer, restless_writer
from tests.support.made_papers import similar
from tests.support.word_embedding import WordEmbedding

ROUNDS = int(os.environ.get("CITELOOM_TORTURE_ROUNDS", "300"))  # of an edit, an addition, a renaming and a removal
READERS = int(os.environ.get("CITELOOM_TORTURE_READERS", "50"))


@pytest.fixture(autouse=True)
def _busy_cores() -> Iterator[None]:
    busy = [sys.executable, "-c", "import os; os.nice(10); begun = os.getppid()\nwhile os.getppid() == begun: pass"]
    processes = [subprocess.Popen(busy) for _ in range(2)]
    yield
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(params=[5_000, 0], ids=["whole", "graph"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared whole, as so small a library is, and through the graph, as a large one."""
    monkeypatch.setattr("citeloom.stores.local.vector_search.WHOLE_LIMIT", request.param)


class Audience:
    """Readers of a library whose writer pauses, and what they missed: searches and misses by event."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._kept = Library.open(home, WordEmbedding())
        self._query = WordEmbedding().vector("trials measured")
        self.repeats: Counter[str] = Counter()
        self.searches: Counter[str] = Counter()
        self.missed: list[str] = []

    def close(self) -> None:
        self._kept.close()

    async def search(self, event: str) -> None:
        """Search in all ways, with a library that stays open and with one that is opened now."""
        self.repeats[event] += 1
        fresh = Library.open(self._home, WordEmbedding())
        for reader in (self._kept, fresh):
            await self._compare(event, reader)
        fresh.close()

    async def _compare(self, event: str, reader: Library) -> None:
        records = reader.records()
        every = {chunk_id(key, place) for key, record in records.items() for place in range(record.chunk_count)}
        self._note(event, "papers", pausing_writer.UNTOUCHED, records)
        vectors = reader.store.get_vectors(sorted(every))
        self._note(event, "vectors by id", every, vectors)
        exact = [score for _, score in sort_scores(cosines(vectors, self._query).items())[:5]]
        for way, limit in (("whole", 5_000), ("graph", 0)):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("citeloom.stores.local.vector_search.WHOLE_LIMIT", limit)
                reader._nearest = Nearest(reader.records, reader.store, reader.catalog)
                self._note(event, way, every, dict(reader.nearest_ids(self._query, 1000)))
                best = [score for _, score in reader.nearest_ids(self._query, 5)]
                self._note(event, f"best, {way}", ["all"], ["all"] if np.allclose(best, exact, atol=1e-5) else [])
                near = {paper.paper.key for paper in reader.nearest_papers(self._query, 100)}
                self._note(event, f"papers, {way}", records, near)
        terms = analyze("series of trials")
        self._note(event, "words", every, dict(reader.matching(terms, 1000)))
        hits = await retrieve(reader, "series of trials", 1000)
        self._note(event, "fused", every, [hit.chunk.id for hit in hits])

    def _note(self, event: str, way: str, wanted: Collection[str], found: Collection[str]) -> None:
        self.searches[event] += 1
        if lacking := set(wanted) - set(found):
            self.missed.append(f"{event}, {way}: {sorted(lacking)}")

    def table(self) -> str:
        """Repeats and searches of each event."""
        return "\n".join(
            f"{name}: {count} times, {self.searches[name]} searches" for name, count in self.repeats.items()
        )


@pytest.fixture
def pausing(tmp_path: Path) -> Iterator[tuple[Home, subprocess.Popen[str]]]:
    """A library, and a process that changes it and pauses after each write."""
    pausing_writer.make_papers(tmp_path / "papers")
    command = [sys.executable, pausing_writer.__file__, str(tmp_path / "home"), str(tmp_path / "papers")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdout is not None and process.stdout.readline() == "done\n"
        yield FolderHome(tmp_path / "home"), process
        process.kill()


async def test_readers_miss_nothing_between_any_two_writes_of_a_change(
    pausing: tuple[Home, subprocess.Popen[str]],
) -> None:
    home, process = pausing
    assert process.stdin is not None and process.stdout is not None
    audience = Audience(home)
    for _ in range(ROUNDS):
        for change in pausing_writer.CHANGES:
            process.stdin.write(f"{change}\n")
            seen: Counter[str] = Counter()
            while (write := process.stdout.readline().strip()) != "done":
                assert write, "the writer came to harm"
                seen[write] += 1
                await audience.search(f"{change}: {write} {seen[write]}")
                process.stdin.write("\n")
    audience.close()
    sys.stdout.write(audience.table() + "\n")
    assert audience.missed == []


@pytest.fixture
def restless(tmp_path: Path) -> Iterator[Callable[[int], Home]]:
    """A library that a process edits without pause."""
    begun: list[subprocess.Popen[str]] = []

    def start_writing(sync: int) -> Home:
        command = [sys.executable, restless_writer.__file__, str(tmp_path / "home"), str(sync)]
        begun.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        output = begun[0].stdout
        assert output is not None and output.readline() == "written\n"
        return FolderHome(tmp_path / "home")

    yield start_writing
    for process in begun:
        assert process.poll() is None  # it is undamaged
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("sync", [60, 1_000])
def test_a_busy_writer_hides_no_chunk_of_other_papers_from_a_reader(restless: Callable[[int], Home], sync: int) -> None:
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
def test_threads_sharing_a_library_lose_nothing_beside_a_busy_writer(
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
