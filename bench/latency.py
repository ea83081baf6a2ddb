"""How long a search takes in a large library: real texts mixed by halves, their vectors with noise, no model.

The library is filled straight through the stores, 50 chunks a paper, so that the figure is that of searching. The
time of embedding the query is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from citeloom.documents import Category, Chunk, Paper, chunk_id
from citeloom.models.embedding import Vector, Vectors
from citeloom.stores.changes import Change, PaperRecord
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.tools.retrieval import Retrieval, retrieve
from citeloom.tools.scope import Scope

PER_PAPER: Final = 50
K: Final = 20
QUERIES: Final = 60
_DIMENSIONS: Final = 384
_ALL: Final = Scope()


class GivenVectors:
    """Implements `EmbeddingModel` for queries whose vectors are there."""

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
        raise NotImplementedError("the vectors of documents are made here, not embedded")

    async def embed_query(self, text: str) -> Vector:
        return self.vectors[text]


def texts_of(folder: Path) -> list[list[str]]:
    """The words of passages of about 300 words, from the markdown files of a folder."""
    passages: list[list[str]] = []
    for path in sorted(folder.glob("*.md")):
        words = path.read_text(encoding="utf-8").split()
        passages += [words[start : start + 300] for start in range(0, len(words) - 300, 300)]
    return passages


def fill(library: Library, passages: Sequence[Sequence[str]], chunks: int) -> None:
    """Have the library hold so many chunks."""
    random = np.random.default_rng(3)
    centres = _unit(random.standard_normal((len(passages), _DIMENSIONS)))
    library.finish_staged()
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
        change = Change(key, record, (), tuple(made), vectors, vectors[0])
        library.catalog.stage([change])
        library.carry_out([change])


async def measure(library: Library, embedding: GivenVectors, passages: Sequence[Sequence[str]]) -> list[str]:
    """A row for each kind of search."""
    random = np.random.default_rng(4)
    queries = [" ".join(passages[place][10:25]) for place in random.integers(0, len(passages), QUERIES)]
    for query in queries:
        embedding.vectors[query] = _unit(random.standard_normal((1, _DIMENSIONS)))[0]
    eight = tuple(sorted(library.records())[::7][:8])
    searches = {
        "vectors": (_ALL, Retrieval("dense")),
        "words": (_ALL, Retrieval("bm25")),
        "fused": (_ALL, Retrieval()),
        "fused, 8 papers": (Scope(eight), Retrieval()),
        "fused, one category": (Scope(categories=(Category.METHOD,)), Retrieval()),
        "fused, six years": (Scope(years=(2000, 2005)), Retrieval()),
        "fused, one venue": (Scope(venue="journal 07"), Retrieval()),
    }
    rows = []
    for name, (scope, how) in searches.items():
        rows.append(await _row(name, [lambda q=q, s=scope, h=how: retrieve(library, q, K, s, h) for q in queries]))
    windows = [f"{key}:00010" for key in list(library.records())[:QUERIES]]
    rows.append(await _row("window", [lambda i=i: asyncio.to_thread(library.window, i, 1) for i in windows]))
    return rows


async def _row(name: str, calls: Sequence[Callable[[], Awaitable[object]]]) -> str:
    await calls[0]()
    times = []
    for call in calls:
        began = time.perf_counter()
        await call()
        times.append(1000 * (time.perf_counter() - began))
    return f"| {name} | {statistics.median(times):.1f} ms | {np.percentile(times, 95):.1f} ms |"


def _unit(rows: np.ndarray) -> Vectors:  # type: ignore[type-arg]
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description="Latency of searches without the query's embedding.")
    parser.add_argument("texts", type=Path, help="folder of markdown files to take the texts from")
    parser.add_argument("--chunks", type=int, default=10_000)
    given = parser.parse_args()
    passages = texts_of(given.texts)
    with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as folder:
        embedding = GivenVectors()
        library = Library.open(Home(Path(folder)), embedding)
        began = time.perf_counter()
        fill(library, passages, given.chunks)
        print(f"{library.chunk_count()} chunks, written at {given.chunks / (time.perf_counter() - began):.0f} a second")
        print("\n| search, 20 hits | median | 95% |\n|---|---|---|")
        print("\n".join(asyncio.run(measure(library, embedding, passages))))
        library.close()
        print("\nOn disk, bytes a chunk:")
        for part in (library.home.chroma, library.home.fulltext, library.home.catalog):
            files = [part] if part.is_file() else [path for path in part.rglob("*") if path.is_file()]
            print(f"  {part.name}: {sum(path.stat().st_size for path in files) / given.chunks:.0f}")
        print(f"Most memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
