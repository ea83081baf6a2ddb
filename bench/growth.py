"""The growth of a library: writing, searching, memory and disk at several sizes.

Texts are halves of real passages joined together; vectors are synthetic: a few hundred centres with noise. The library
is filled directly through the stores, 50 chunks per paper, so the figures are for storing and searching without
embedding. Each library is filled in one process and searched in another, whose memory is then a reader's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from bench.papers import material
from citeloom.documents import Category, Chunk, Paper, chunk_id
from citeloom.models.embeddings.protocol import Vector, Vectors
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from citeloom.stores.paper_catalog import Change, PaperRecord
from citeloom.tools.paper_search import search_papers
from citeloom.tools.retrieval import Retrieval, retrieve
from citeloom.tools.scope import Scope

PER_PAPER: Final = 50
AT_ONCE: Final = 40  # papers written together, as an ingest does when embedding is fast
K: Final = 20
QUERIES: Final = 60
_DIMENSIONS: Final = 384
_LIMITS: Final = {  # ms at the largest size
    "fused": 15,
    "fused, 8 papers": 20,
    "fused, one category of seven": 40,
    "fused, six years of 35": 40,
    "fused, one venue of 20": 40,
    "window of three": 3,
}


class GivenVectors:
    """Implements `EmbeddingModel` for queries with known vectors."""

    name = "bench:given"
    dimensions = _DIMENSIONS
    at_once = 1

    def __init__(self) -> None:
        self.vectors: dict[str, Vector] = {}

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def count_tokens_each(self, texts: Sequence[str]) -> list[int]:
        return [self.count_tokens(text) for text in texts]

    async def embed_documents(self, texts: Sequence[str], on_done: Callable[[int], None] | None = None) -> Vectors:
        raise NotImplementedError("document vectors are synthetic, not embedded")

    async def embed_query(self, text: str) -> Vector:
        return self.vectors[text]


def texts_of(papers: Sequence[Path]) -> list[list[str]]:
    """The words of passages of about 300 words, from markdown files."""
    passages: list[list[str]] = []
    for path in papers:
        words = path.read_text(encoding="utf-8").split()
        passages += [words[start : start + 300] for start in range(0, len(words) - 300, 300)]
    return passages


def fill(library: Library, passages: Sequence[Sequence[str]], chunks: int) -> None:
    """Fill the library up to this number of chunks."""
    random = np.random.default_rng(5)
    centres = _centres(passages)
    library.finish_staged()
    waiting: list[Change] = []
    for number in range(library.chunk_count() // PER_PAPER, chunks // PER_PAPER):
        key = f"paper{number:05d}"
        first, second = random.integers(0, len(passages), (2, PER_PAPER))
        vectors = _unit(centres[first] + 0.05 * random.standard_normal((PER_PAPER, _DIMENSIONS)))
        made = []
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            text = " ".join([*passages[one][:150], *passages[other][150:]])
            section, kind = f"Section {index // 8}", Category(index % 7)
            made.append(Chunk(chunk_id(key, index), key, index, text, section, "", kind, 1, None, 0, len(text), 400))
        paper = Paper(key, f"Title {number}", year=1990 + number % 35, venue=f"Journal {number % 20:02d}")
        record = PaperRecord(paper, "", "", "a summary", "extractive", PER_PAPER)
        waiting.append(Change(key, record, (), tuple(made), vectors, vectors[0]))
        if len(waiting) == AT_ONCE or number == chunks // PER_PAPER - 1:
            library.catalog.stage(waiting)
            library.carry_out(waiting)
            waiting = []


async def search(library: Library, embedding: GivenVectors, passages: Sequence[Sequence[str]]) -> dict[str, float]:
    """The medians of each kind of search in ms: the first time, when passages come from disk, and again."""
    random = np.random.default_rng(4)
    queries = [" ".join(passages[place][10:25]) for place in random.integers(0, len(passages), QUERIES)]
    centres = _centres(passages)[random.integers(0, len(passages), QUERIES)]
    vectors = _unit(centres + 0.05 * random.standard_normal((QUERIES, _DIMENSIONS)))
    embedding.vectors.update(zip(queries, vectors, strict=True))
    keys = sorted(library.records())
    eights = [tuple(keys[int(place)] for place in random.choice(len(keys), 8)) for _ in queries]
    every = [Scope()] * QUERIES
    searches: dict[str, tuple[list[Scope], Retrieval]] = {
        "vectors": (every, Retrieval("dense")),
        "words": (every, Retrieval("bm25")),
        "fused": (every, Retrieval()),
        "fused, 8 papers": ([Scope(eight) for eight in eights], Retrieval()),
        "fused, one category of seven": ([Scope(categories=(Category.METHOD,))] * QUERIES, Retrieval()),
        "fused, six years of 35": ([Scope(years=(2000, 2005))] * QUERIES, Retrieval()),
        "fused, one venue of 20": ([Scope(venue="journal 07")] * QUERIES, Retrieval()),
    }
    found: dict[str, float] = {}
    for name, (scopes, how) in searches.items():
        found |= await _medians(
            name,
            [lambda q=q, s=s, h=how: retrieve(library, q, K, s, h) for q, s in zip(queries, scopes, strict=True)],
        )
    windows = [f"{keys[int(place)]}:00010" for place in random.integers(0, len(keys), QUERIES)]
    found |= await _medians("window of three", [lambda i=i: asyncio.to_thread(library.window, i, 1) for i in windows])
    found |= await _medians(
        "papers by full text",
        [lambda q=q: asyncio.to_thread(search_papers, library, " ".join(q.split()[:5])) for q in queries],
    )
    return found


async def _medians(name: str, calls: Sequence[Callable[[], Awaitable[object]]]) -> dict[str, float]:
    await calls[0]()
    return {f"{name}, first time": await _median(calls), name: await _median(calls)}


async def _median(calls: Sequence[Callable[[], Awaitable[object]]]) -> float:
    times = []
    for call in calls:
        began = time.perf_counter()
        await call()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def _centres(passages: Sequence[Sequence[str]]) -> Vectors:
    return _unit(np.random.default_rng(3).standard_normal((len(passages), _DIMENSIONS)))


def _unit(rows: np.ndarray) -> Vectors:  # type: ignore[type-arg]
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description="Measures libraries of several sizes.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="numbers of chunks")
    parser.add_argument("--keep", type=Path, help="folder to keep the libraries in; existing ones are reused")
    parser.add_argument("--child", choices=("fill", "search"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(_child(given.child, given.keep, given.sizes[0])))
        return
    with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as folder:
        homes = {size: (given.keep or Path(folder)) / str(size) for size in given.sizes}
        columns = [{**_run("fill", home, size), **_run("search", home, size)} for size, home in homes.items()]
    print(_table(given.sizes, columns))


def _run(what: str, home: Path, size: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.growth", "--child", what, "--keep", str(home), "--sizes", str(size)]
    print(f"{what} {size} ...", file=sys.stderr)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _child(what: str, folder: Path, size: int) -> dict[str, float]:
    passages = texts_of([path for group in material().groups for path in group])
    embedding = GivenVectors()
    library = Library.open(FolderHome(folder), embedding)
    began, before = time.perf_counter(), library.chunk_count()
    if what == "search":
        found = asyncio.run(search(library, embedding, passages))
        library.close()
        return {**found, "memory of a reader, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    fill(library, passages, size)
    written = library.chunk_count() - before
    rate = written / (time.perf_counter() - began) if written else float("nan")
    library.close()
    parts = {"Chroma": library.home.chroma, "full text": library.home.fulltext, "catalog": library.home.catalog}
    disk = {f"disk, {name}, bytes a chunk": _bytes(path) / size for name, path in parts.items()}
    return {"written, chunks a second": rate, **disk}


def _bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())


def _table(sizes: Sequence[int], columns: Sequence[dict[str, float]]) -> str:
    lines = [f"| | {' | '.join(f'{size:,}' for size in sizes)} | limit |", "|---|" + "---|" * (len(sizes) + 1)]
    for name in columns[0]:
        unit = "" if "," in name and ("MB" in name or "chunk" in name) else " ms"
        cells = [f"{column[name]:,.{1 if unit else 0}f}{unit}" for column in columns]
        limit = f"{_LIMITS[name]} ms" if name in _LIMITS else ""
        lines.append(f"| {name} | {' | '.join(cells)} | {limit} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
