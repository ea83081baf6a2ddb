"""Ingest against the embedder alone on the same texts, alternating, one group of papers at a time.

Ingest does everything: reading, parsing, chunking, embedding, Chroma and the catalog; the first group also opens
Chroma. The embedder's weights are loaded before either is timed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.measure import Row
from bench.papers import Material
from citeloom.ingestion.ingest import ingest
from citeloom.ingestion.plan import make_plan
from citeloom.ingestion.reading import local_executor
from citeloom.ingestion.sources import read_sources
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.stores.home import Home
from citeloom.stores.library import Library

TARGET = 0.85
CHUNKING = (400, 100)


async def measure(home: Home, material: Material) -> list[Row]:
    """One row, in texts per second; `home` contains the library afterwards."""
    embedding = LocalEmbedding()
    library = Library.open(home, embedding)
    await embedding.embed_query("warm")
    texts = [_texts(library, group, material.bib) for group in material.groups]

    async def ingest_group(number: int) -> float:
        started = time.perf_counter()
        report = await ingest(library, material.groups[number], bib=material.bib)
        assert not report.refused and len(report.added) == len(material.groups[number]), report
        return time.perf_counter() - started

    async def embed(number: int) -> float:
        started = time.perf_counter()
        await embedding.embed_documents(texts[number])
        return time.perf_counter() - started

    pairs: list[tuple[float, float]] = []
    for number in range(len(texts)):
        if number % 2 == 0:
            first = await ingest_group(number)
            pairs.append((first, await embed(number)))
        else:
            second = await embed(number)
            pairs.append((await ingest_group(number), second))
    library.close()
    counts = [len(group) for group in texts]
    # The totals are what a user waits for; they include opening Chroma once.
    rates = [sum(counts) / sum(times) for times in zip(*pairs, strict=True)]
    ratios = tuple(alone / whole for whole, alone in pairs)
    what = f"ingest, {sum(map(len, material.groups))} papers, {sum(counts)} texts in {len(pairs)} groups"
    return [
        Row(what, rates[0], rates[1], ratios, rates[0] / rates[1], "texts/s", TARGET, at_least=True),
        Row("ingest, the median group", *_median_rates(counts, pairs), ratios, median(ratios), "texts/s"),
    ]


def _median_rates(counts: Sequence[int], pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    both = [[count / pair[side] for count, pair in zip(counts, pairs, strict=True)] for side in (0, 1)]
    return median(both[0]), median(both[1])


def _texts(library: Library, papers: Sequence[Path], bib: Path) -> list[str]:
    """The texts that an ingest of the papers embeds: chunks and summaries."""
    plan = make_plan(
        library,
        read_sources(list(papers), bib),
        prune=False,
        rewrite_summaries=False,
        chunking=CHUNKING,
        split=local_executor(library.embedding).split,
    )
    return [text for paper in plan.to_index for text in paper.missing_texts().values()]
