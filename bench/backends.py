"""Compares the searches of a folder, PostgreSQL and Milvus on the same library: quality, agreement and time.

    python -m bench.backends HOME HOME    two homes with the same library, such as a folder and its copy

The first ten chunks of each query are compared; `on_sets` gives nDCG@10 on the sets of `bench.retrieval`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from bench.retrieval import DEPTH, MOST_QUERIES, SETS, _ndcg, _recall, _Remembering, fill, load
from citeloom.settings.addresses import parse_home, parse_vectors
from citeloom.stores.folder_home import FolderHome, find_home
from citeloom.stores.library import Library
from citeloom.tools.retrieval import Retrieval, retrieve

STAGES = {"BM25": Retrieval("bm25"), "vectors": Retrieval("dense"), "as usual": Retrieval()}


async def search_all(library: Library, queries: list[str], how: Retrieval) -> tuple[list[list[str]], float]:
    """Return the first ten chunks of each query, and the median milliseconds of a query, run in sequence."""
    for text in queries:
        await library.embedding.embed_query(text)  # remembered: not part of the time
    answers, times = [], []
    for text in queries:
        began = time.perf_counter()
        hits = await retrieve(library, text, DEPTH, options=how)
        times.append(time.perf_counter() - began)
        answers.append([hit.chunk.id for hit in hits])
    return answers, 1000 * median(times)


async def compare(names: dict[str, Library], queries: list[str], quality: Callable[[list[list[str]]], str]) -> None:
    """Print a row for each stage and library."""
    print("| stage | store | quality | same first ten | ms per query |\n|---|---|---|---|---|")
    for stage, how in STAGES.items():
        first: list[list[str]] | None = None
        for name, library in names.items():
            answers, milliseconds = await search_all(library, queries, how)
            first = first if first is not None else answers
            same = mean(
                len(set(one) & set(other)) / max(1, len(one)) for one, other in zip(first, answers, strict=True)
            )
            print(f"| {stage} | {name} | {quality(answers)} | {same:.3f} | {milliseconds:.1f} |", flush=True)


async def on_sets(
    address: Callable[[], str], shared: Path, milvus: Callable[[], str] | None = None, sets: Sequence[str] = SETS
) -> None:
    """Compare on retrieval sets; `address` gives an empty database at each call, `milvus` the address of a Milvus."""
    for name in sets:
        given = load(shared / name, MOST_QUERIES)
        judged = [query for query in given.queries if query in given.relevant]
        texts = [given.queries[query][0] for query in judged]

        def quality(answers: list[list[str]], judged: list[str] = judged, relevant: Any = given.relevant) -> str:
            keys = [[identifier.rpartition(":")[0] for identifier in found] for found in answers]
            gain = mean(_ndcg(found, relevant[query]) for query, found in zip(judged, keys, strict=True))
            recall = mean(_recall(found, relevant[query]) for query, found in zip(judged, keys, strict=True))
            return f"nDCG {gain:.4f}, recall {recall:.4f}"

        embedding = _Remembering()
        with tempfile.TemporaryDirectory() as folder:
            homes = {"folder": FolderHome(Path(folder)), "PostgreSQL": find_home(parse_home(address()))}
            if milvus is not None:
                homes["PostgreSQL and Milvus"] = find_home(parse_home(address()), vectors=parse_vectors(milvus()))
            opened = {store: Library.open(home, embedding) for store, home in homes.items()}
            for library in opened.values():
                await fill(library, given.documents)
            print(f"\n{name}: {len(given.documents)} documents, {len(texts)} queries\n")
            await compare(opened, texts, quality)
            for library in opened.values():
                library.close()


async def on_library(homes: list[str]) -> None:
    """Compare homes that hold the same library, with the papers' titles and sentences as queries."""
    embedding = _Remembering()
    opened = {str(parse_home(home)): Library.open(find_home(parse_home(home)), embedding) for home in homes}
    first = next(iter(opened.values()))
    queries = [paper.title for paper in first.papers()]
    queries += [
        first.paper_chunks(paper.key)[3].text[:200] for paper in first.papers() if first.chunk_count(paper.key) > 3
    ]
    print(f"\n{len(first.papers())} papers, {first.chunk_count()} chunks, {len(queries)} queries\n")
    await compare(opened, queries, lambda _: "")
    for library in opened.values():
        library.close()


if __name__ == "__main__":
    asyncio.run(on_library(sys.argv[1:]))
