"""The quality of each retrieval stage: BM25, vectors, fused, with options; and the significance of the differences.

The documents of a set become a library, one chunk each (title and abstract), and every query goes through
`citeloom.tools.retrieval`, so that real searches are measured. Vectors are cached in `.cache/`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers import ROOT
from citeloom.documents import Category, Chunk, Paper, chunk_id
from citeloom.models.embeddings.bundled_models import LocalEmbedding, Reranker
from citeloom.models.embeddings.protocol import Vector
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from citeloom.stores.paper_catalog import Change, PaperRecord
from citeloom.tools import retrieval
from citeloom.tools.retrieval import Retrieval, retrieve
from tests.support.vector_cache import CachedEmbedding

SETS = ("manubot-citances", "pubmedqa")
USUAL = "fused by score, BM25 x 0.3"
STAGES: dict[str, Retrieval] = {
    "BM25": Retrieval("bm25"),
    "vectors": Retrieval("dense"),
    **{f"fused by score, BM25 x {weight}": Retrieval(bm25_weight=weight) for weight in (0.2, 0.3, 0.4, 0.5, 0.8)},
}
# About 50 ms for each pair of query and text: a separate part, on fewer queries.
RERANKED: dict[str, Retrieval] = {
    USUAL: STAGES[USUAL],
    "re-ranked, it alone decides": Retrieval(rerank=1.0),
    **{f"re-ranked, its part {part}": Retrieval(rerank=part) for part in (0.5, 0.3, 0.2, 0.1)},
}
RERANKED_QUERIES = {"pubmedqa": 100}
DEPTH = 10
MOST_QUERIES = 300
_RESAMPLES = 10_000


@dataclass(frozen=True)
class RetrievalSet:
    """Documents by key, queries by id with the group that determines their half, and the keys each should find."""

    documents: dict[str, str]
    queries: dict[str, tuple[str, str]]
    relevant: dict[str, set[str]]


def load(folder: Path, most: int = MOST_QUERIES) -> RetrievalSet:
    """A set stored as corpus.jsonl, queries.jsonl and qrels.tsv."""
    corpus = _lines(folder / "corpus.jsonl")
    keys = {record["_id"]: f"d{number:04d}" for number, record in enumerate(corpus)}
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, _ = line.split("\t")
        relevant.setdefault(query, set()).add(keys[document])
    return RetrievalSet(
        {keys[record["_id"]]: f"{record['title']}\n\n{record['text']}".strip() for record in corpus},
        {
            record["_id"]: (record["text"], record.get("manuscript", record["_id"]))
            for record in _lines(folder / "queries.jsonl")[:most]
        },
        relevant,
    )


def measure(stages: dict[str, Retrieval] = STAGES, most: Mapping[str, int] = MappingProxyType({})) -> None:
    """Print a table for each available set; `most` limits the number of queries of a set."""
    shared = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared")) / "retrieval"
    for name in SETS:
        if not (shared / name).is_dir():
            print(f"{name}: skipped, since {shared} does not have it (set CITELOOM_SHARED)")
            continue
        print(f"\n{name}\n\n{asyncio.run(_table(load(shared / name, most.get(name, MOST_QUERIES)), stages))}")


class _Remembering(LocalEmbedding):
    """Embeds a query once for all stages."""

    def __init__(self) -> None:
        super().__init__()
        self._queries: dict[str, Vector] = {}

    async def embed_query(self, text: str) -> Vector:
        if text not in self._queries:
            self._queries[text] = await super().embed_query(text)
        return self._queries[text]


class _RememberingScorer(Reranker):
    """Scores a pair once for all stages."""

    def __init__(self) -> None:
        self._scores: dict[tuple[str, str], float] = {}

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in texts if (query, text) not in self._scores]
        self._scores.update(zip(((query, text) for text in new), super().score(query, new).tolist(), strict=True))
        return np.array([self._scores[query, text] for text in texts], dtype=np.float32)


async def _table(given: RetrievalSet, stages: dict[str, Retrieval]) -> str:
    with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as folder:
        library = Library.open(FolderHome(Path(folder)), _Remembering())
        try:
            await fill(library, given.documents)
            retrieval.RERANKER = _RememberingScorer()
            found = {stage: await _run(library, given, how) for stage, how in stages.items()}
        finally:
            library.close()
    judged = [query for query in given.queries if query in given.relevant]
    dev = np.array([_is_dev(given.queries[query][1]) for query in judged])
    gains = {
        stage: np.array([_ndcg(answers[query], given.relevant[query]) for query in judged])
        for stage, answers in found.items()
    }
    lines = [
        f"{len(given.documents)} documents, {dev.sum()} + {(~dev).sum()} queries",
        "",
        f"| stage | nDCG@{DEPTH} dev | test | all | against the usual, 95% | recall@{DEPTH} |",
        "|---|---|---|---|---|---|",
    ]
    for stage, gain in gains.items():
        low, high = _interval(gain - gains[USUAL])
        recall = np.mean([_recall(found[stage][query], given.relevant[query]) for query in judged])
        lines.append(
            f"| {stage} | {gain[dev].mean():.3f} | {gain[~dev].mean():.3f} | {gain.mean():.3f} |"
            f" {low:+.3f} to {high:+.3f} | {recall:.3f} |"
        )
    return "\n".join(lines)


async def fill(library: Library, documents: dict[str, str]) -> None:
    """Make each document a paper with one chunk."""
    model = CachedEmbedding(library.embedding, ROOT / ".cache" / "vectors.sqlite")
    rows = await model.embed_documents(list(documents.values()))
    await asyncio.to_thread(library.finish_staged)
    changes = []
    for (key, text), vector in zip(documents.items(), rows, strict=True):
        chunk = Chunk(chunk_id(key, 0), key, 0, text, "", "", Category.ABSTRACT, 1, None, 0, len(text), 0)
        record = PaperRecord(Paper(key, key), "", "", key, "extractive", 1)
        changes.append(Change(key, record, (), (chunk,), vector[None, :], vector))
    await asyncio.to_thread(library.catalog.stage, changes)
    await asyncio.to_thread(library.carry_out, changes)


async def _run(library: Library, given: RetrievalSet, how: Retrieval) -> dict[str, list[str]]:
    at_once = asyncio.Semaphore(os.cpu_count() or 1)

    async def answer(text: str) -> list[str]:
        async with at_once:
            return [hit.chunk.key for hit in await retrieve(library, text, DEPTH, options=how)]

    found = await asyncio.gather(*(answer(text) for text, _ in given.queries.values()))
    return dict(zip(given.queries, found, strict=True))


def _is_dev(group: str) -> bool:
    """Whether a manuscript is in the development half; its sentences are alike, so all go into one half."""
    return int(hashlib.sha256(group.encode()).hexdigest(), 16) % 2 == 0


def _ndcg(found: Sequence[str], relevant: set[str]) -> float:
    gained = sum(1 / math.log2(place + 2) for place, key in enumerate(found) if key in relevant)
    return gained / sum(1 / math.log2(place + 2) for place in range(min(DEPTH, len(relevant))))


def _recall(found: Sequence[str], relevant: set[str]) -> float:
    return len(relevant.intersection(found)) / len(relevant)


def _interval(differences: Any) -> tuple[float, float]:
    """The central 95% of the mean of paired differences, over bootstrap samples of the queries."""
    drawn = np.random.default_rng(20).integers(0, len(differences), (_RESAMPLES, len(differences)))
    low, high = np.percentile(differences[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
